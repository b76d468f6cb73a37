// Connects the graph of flame.js (crates/spy) with the tools of the dashboard's page.
"use strict";

(() => {
  const figure = document.querySelector("figure.flame");
  if (!figure) {
    return;
  }
  const [said, find, reset] = ["#said", "#find", "#reset"].map((id) => figure.querySelector(id));
  const first = said.textContent;
  const boxes = figure.querySelectorAll("svg > g");
  const graph = flameGraph(boxes, { margin: 0, width: 1200, letter: 6.6 });
  const zoom = (to) => {
    const title = graph.zoom(to);
    reset.disabled = !title;
    said.textContent = title ?? first;
  };
  figure.querySelector("#tools").hidden = false;
  figure.querySelector("svg").addEventListener("click", (event) => {
    const g = event.target.closest("svg > g");
    if (g) {
      zoom(graph.boxOf(g));
    }
  });
  reset.addEventListener("click", () => zoom(graph.boxes[0]));
  find.addEventListener("input", () => {
    said.textContent = graph.mark(find.value).text || first;
  });
})();
