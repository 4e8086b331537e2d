"use strict";
// Brings the figures of the page up to date: asks for the same address, and takes its live part; when events tell of a
// change, else every some seconds. Without this script the page is the same; it is only as old as it is.
(function () {
  const ELEMENT = document.getElementById("live");
  const EVERY = 1000 * (ELEMENT.dataset.every || 10);
  const SOONEST = 2000; // events come in bursts
  let failures = 0;
  let events = null;
  let timer = 0;
  let refreshedAt = Date.now();

  function say(text) {
    const place = document.getElementById("refreshing");
    if (place) place.textContent = text;
  }

  function sayHow() {
    const isLive = events && events.readyState === EventSource.OPEN;
    say(isLive ? "Refreshed whenever something changes." : "Refreshed every " + EVERY / 1000 + " s.");
  }

  function plan(milliseconds) {
    clearTimeout(timer);
    timer = setTimeout(refresh, milliseconds);
  }

  async function refresh() {
    if (document.hidden) return; // it goes on when somebody looks
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" } });
      if (!answer.ok) throw new Error("status " + answer.status);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("live");
      const live = document.getElementById("live");
      const focused = live.contains(document.activeElement) ? document.activeElement.id : "";
      live.replaceWith(document.importNode(fresh, true));
      if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
      failures = 0;
      if (fresh.dataset.over) return stop();
      sayHow();
    } catch (error) {
      failures += 1;
      say("The service does not answer (" + error.message + "): what is shown is of before.");
    }
    refreshedAt = Date.now();
    plan(EVERY * Math.min(6, 1 + failures));
  }

  function listen() {
    if (!ELEMENT.dataset.events || events) return;
    events = new EventSource(ELEMENT.dataset.events);
    events.addEventListener("open", sayHow);
    events.addEventListener("error", sayHow); // it tries again by itself, unless it is refused; pages are asked for anyway
    events.addEventListener("flow", () => plan(Math.max(0, refreshedAt + SOONEST - Date.now())));
  }

  function stop() {
    clearTimeout(timer);
    if (events) events.close();
    events = null;
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return stop(); // browsers have few connections to one host, and other pages need them
    listen();
    refresh();
  });
  sayHow();
  listen();
  plan(EVERY);
})();
