"use strict";
// htmx brings the live part of a page up to date, as its attributes say. Here is what they cannot say: events make it ask
// at once, nobody asks while nobody looks, and how it goes is told below it.
(function () {
  const SOONEST = 2000; // events come in bursts
  const told = document.getElementById("refreshing");
  const live = () => document.getElementById("live");
  let events = null;
  let timer = 0;
  let isAsking = false;
  let isLate = false; // something changed while it was asking
  let askedAt = Date.now();
  let answeredAt = Date.now();
  let failure = "";

  function tell() {
    const every = live().dataset.every;
    const minutes = Math.floor((Date.now() - answeredAt) / 60000);
    const age = minutes ? minutes + " min old" : "less than a minute old";
    let text = "Refreshed every " + every + " s.";
    if (!every) text = "";
    else if (failure) text = "The service does not answer (" + failure + "): what is shown is " + age + ".";
    else if (events && events.readyState === EventSource.OPEN) text = "Refreshed whenever something changes.";
    if (told.textContent !== text) told.textContent = text; // else screen readers would say it again
  }

  function refresh() {
    clearTimeout(timer);
    timer = 0;
    htmx.trigger(live(), "refresh");
  }

  function soon() {
    isLate = isAsking;
    if (!isAsking && !timer) timer = setTimeout(refresh, Math.max(0, askedAt + SOONEST - Date.now()));
  }

  function listen() {
    if (document.hidden || events || !live().dataset.events) return;
    events = new EventSource(live().dataset.events);
    events.addEventListener("open", tell);
    events.addEventListener("error", tell); // it tries again by itself, unless it is refused; htmx asks anyway
    events.addEventListener("flow", soon);
  }

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden) return event.preventDefault(); // it goes on when somebody looks
    isAsking = true;
    askedAt = Date.now();
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    const answer = event.detail;
    answer.isError ||= !answer.serverResponse.includes('id="live"'); // somebody between has answered, a proxy
    answer.shouldSwap = !answer.isError;
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    isAsking = false;
    failure = event.detail.successful ? "" : "status " + (event.detail.xhr.status || "none");
    if (!failure) answeredAt = Date.now();
    if (isLate) soon();
    tell();
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      clearTimeout(timer);
      timer = 0;
      if (events) events.close(); // browsers have few connections to one host, and other pages need them
      events = null;
    } else {
      listen();
      refresh();
    }
  });
  listen();
  tell();
})();
