"use strict";
// Brings the figures of the page up to date: asks for the same address, and takes its live part. Without this script the
// page is the same; it is only as old as it is.
(function () {
  const EVERY = 1000 * (document.getElementById("live").dataset.every || 10);
  let failures = 0;

  function say(text) {
    const place = document.getElementById("refreshing");
    if (place) place.textContent = text;
  }

  async function refresh() {
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
      if (fresh.dataset.over) return;
      say("Refreshed every " + EVERY / 1000 + " s.");
    } catch (error) {
      failures += 1;
      say("The service does not answer (" + error.message + "): what is shown is of before.");
    }
    setTimeout(tick, EVERY * Math.min(6, 1 + failures));
  }

  function tick() {
    if (document.hidden) setTimeout(tick, EVERY);
    else refresh();
  }

  say("Refreshed every " + EVERY / 1000 + " s.");
  setTimeout(tick, EVERY);
})();
