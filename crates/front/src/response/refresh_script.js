// Loads the page again after a change, and shows why a new version does not boot.
(() => {
  "use strict";
  if (window.__samovar_dev) return;
  window.__samovar_dev = true;
  const own = new URL(document.currentScript.src).searchParams.get("v");
  let events = null;
  let frame = null;
  function hide() {
    if (frame) frame.remove();
    frame = null;
  }
  function show(version) {
    hide();
    frame = document.createElement("div");
    frame.style.cssText = "position:fixed;inset:0;z-index:2147483647;background:#fff";
    const page = document.createElement("iframe");
    page.src = "/_samovar/failure?v=" + version;
    page.title = "The new version does not boot";
    page.style.cssText = "position:absolute;inset:0;width:100%;height:100%;border:0";
    const close = document.createElement("button");
    close.textContent = "Show the last good version";
    close.style.cssText = "position:absolute;top:12px;right:24px;padding:6px 12px;font:14px sans-serif";
    close.onclick = hide;
    frame.append(page, close);
    document.documentElement.append(frame);
  }
  function reload(version) {
    // A page from a cache keeps its old version.
    try {
      if (sessionStorage.getItem("samovar-dev") === version) return;
      sessionStorage.setItem("samovar-dev", version);
    } catch {
      // Without storage there is no protection from a cache.
    }
    location.reload();
  }
  function listen() {
    if (events || document.hidden) return;
    events = new EventSource("/_samovar/events");
    events.addEventListener("state", (event) => {
      const state = JSON.parse(event.data);
      if (state.failed) return show(state.version);
      hide();
      if (state.version !== own) reload(state.version);
    });
  }
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) return listen();
    if (events) events.close();
    events = null;
  });
  listen();
})();
