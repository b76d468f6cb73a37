// Updates a live page: the server sends it repeatedly, and changed parts replace the displayed
// ones.
"use strict";

(() => {
  const AGAIN_MS = 30000;
  // A stream that has ended is normally replaced within this time.
  const QUIET_MS = 6000;
  const url = document.body.dataset.live;
  const asOf = document.querySelector("footer time");
  const sign = document.getElementById("live");
  // A part with the pointer or the keyboard focus in it is in use and is not replaced.
  const isUsed = (part) => part.matches(":hover") || part.contains(document.activeElement);
  let stream = null;
  let isPaused = false;
  let timer = 0;
  let quiet = 0;

  const say = (state, text) => {
    sign.dataset.state = state;
    word.textContent = text;
    button.textContent = isPaused ? "Resume" : "Pause";
  };

  const take = (event) => {
    const page = new DOMParser().parseFromString(event.data, "text/html");
    for (const fresh of page.querySelectorAll("[data-part]")) {
      const shown = document.getElementById(fresh.id);
      if (shown && !isUsed(shown) && shown.outerHTML !== fresh.outerHTML) {
        const left = [...shown.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
        shown.replaceWith(document.adoptNode(fresh));
        fresh.querySelectorAll(".scroll").forEach((box, n) => { box.scrollLeft = left[n] || 0; });
      }
    }
    clearTimeout(quiet);
    const now = new Date().toISOString();
    asOf.dateTime = now;
    asOf.textContent = now.slice(0, 19).replace("T", " ");
    say("live", "Live");
  };

  const end = () => {
    clearTimeout(timer);
    clearTimeout(quiet);
    if (stream) stream.close();
    stream = null;
  };

  const begin = () => {
    end();
    if (isPaused || document.hidden) return;
    stream = new EventSource(url);
    stream.addEventListener("page", take);
    stream.addEventListener("error", () => {
      // The browser reconnects after the end of a stream, but not after an error response.
      const isRefused = stream && stream.readyState === EventSource.CLOSED;
      if (isRefused) timer = setTimeout(begin, AGAIN_MS);
      clearTimeout(quiet);
      quiet = setTimeout(() => say("waiting", "Not live"), isRefused ? 0 : QUIET_MS);
    });
  };

  if (!url || !window.EventSource) return;
  const word = document.createElement("span");
  const button = document.createElement("button");
  sign.append(word, " ", button);
  button.type = "button";
  button.addEventListener("click", () => {
    isPaused = !isPaused;
    say(isPaused ? "paused" : "waiting", isPaused ? "Paused" : "Not live");
    begin();
  });
  document.addEventListener("visibilitychange", begin);
  say("waiting", "Not live");
  begin();
})();
