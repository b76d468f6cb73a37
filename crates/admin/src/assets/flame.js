// Zooms a flame graph into the clicked box, and marks boxes by a part of their name. A box has its
// position and width as fractions of the whole in data-x and data-w, and its row in data-r.
"use strict";

(() => {
  const WIDTH = 1200;
  const LETTER = 6.6;
  const figure = document.querySelector("figure.flame");
  if (!figure) {
    return;
  }
  const said = figure.querySelector("#said");
  const find = figure.querySelector("#find");
  const reset = figure.querySelector("#reset");
  const first = said.textContent;
  const boxes = [...figure.querySelectorAll("svg > g")].map((g) => ({
    g,
    x: Number(g.dataset.x),
    w: Number(g.dataset.w),
    row: Number(g.dataset.r),
    name: g.dataset.name,
    bar: g.querySelector("rect"),
    text: g.querySelector("text"),
    title: g.querySelector("title").textContent,
  }));

  const place = (box, left, width) => {
    const px = Math.max(0, width * WIDTH);
    box.g.toggleAttribute("hidden", px < 0.2);
    box.bar.setAttribute("x", left * WIDTH);
    box.bar.setAttribute("width", px);
    box.text.setAttribute("x", left * WIDTH + 3);
    const room = Math.floor((px - 6) / LETTER);
    box.text.textContent = box.name.length <= room ? box.name : room < 3 ? "" : `${box.name.slice(0, room - 1)}…`;
  };

  const zoom = (to) => {
    const end = to.x + to.w;
    const slack = 1e-6;
    for (const box of boxes) {
      const holds = box.row < to.row && box.x <= to.x + slack && box.x + box.w >= end - slack;
      const within = box.row >= to.row && box.x >= to.x - slack && box.x + box.w <= end + slack;
      if (holds) {
        place(box, 0, 1);
      } else if (within) {
        place(box, (box.x - to.x) / to.w, box.w / to.w);
      } else {
        box.g.toggleAttribute("hidden", true);
      }
    }
    reset.disabled = to.row === 0;
    said.textContent = to.row === 0 ? first : to.title;
  };

  const mark = (word) => {
    const wanted = word.toLowerCase();
    const found = boxes.filter((box) => wanted !== "" && box.name.toLowerCase().includes(wanted));
    for (const box of boxes) {
      box.g.classList.toggle("found", found.includes(box));
    }
    // Boxes of calls within a marked box are not counted again.
    let share = 0;
    let end = -1;
    for (const box of found.slice().sort((a, b) => a.x - b.x || b.w - a.w)) {
      if (box.x >= end - 1e-9) {
        share += box.w;
        end = box.x + box.w;
      }
    }
    said.textContent = wanted === "" ? first : `“${word}”: ${(share * 100).toFixed(2)} % in ${found.length} boxes`;
  };

  figure.querySelector("#tools").hidden = false;
  figure.querySelector("svg").addEventListener("click", (event) => {
    const g = event.target.closest("svg > g");
    if (g) {
      zoom(boxes.find((box) => box.g === g));
    }
  });
  reset.addEventListener("click", () => zoom(boxes[0]));
  find.addEventListener("input", () => mark(find.value));
})();
