// Zooms into the clicked box, and marks boxes by a part of their name. The attributes data-x and
// data-w of a box hold its part of the whole, data-r holds its row.
(() => {
    'use strict';
    const MARGIN = 10, WIDTH = 1180, LETTER = 7;
    const svg = document.querySelector('svg');
    const boxes = [...document.querySelectorAll('#graph > g')].map((g) => ({
        g,
        x: Number(g.dataset.x),
        w: Number(g.dataset.w),
        row: Number(g.dataset.r),
        bar: g.querySelector('rect'),
        text: g.querySelector('text'),
        title: g.querySelector('title').textContent,
    }));
    const said = document.getElementById('said');
    const reset = document.getElementById('reset');
    const find = document.getElementById('find');
    const first = said.textContent;
    const name = (box) => box.title.slice(0, box.title.lastIndexOf(' — '));

    function place(box, left, width) {
        const px = Math.max(0, width * WIDTH);
        box.g.style.display = px < 0.2 ? 'none' : '';
        box.bar.setAttribute('x', MARGIN + left * WIDTH);
        box.bar.setAttribute('width', px);
        box.text.setAttribute('x', MARGIN + left * WIDTH + 3);
        const room = Math.floor((px - 6) / LETTER);
        const label = name(box);
        box.text.textContent = label.length <= room ? label : room < 3 ? '' : label.slice(0, room - 1) + '…';
    }

    function zoom(to) {
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
                box.g.style.display = 'none';
            }
        }
        reset.setAttribute('visibility', to.row === 0 ? 'hidden' : 'visible');
        said.textContent = to.row === 0 ? first : to.title;
    }

    function search(word) {
        let share = 0, end = -1;
        const found = boxes.filter((box) => word !== '' && name(box).toLowerCase().includes(word.toLowerCase()));
        boxes.forEach((box) => box.g.classList.toggle('found', found.includes(box)));
        // Boxes below a found box are counted only once, with it.
        for (const box of found.slice().sort((a, b) => a.x - b.x || b.w - a.w)) {
            if (box.x >= end - 1e-9) {
                share += box.w;
                end = box.x + box.w;
            }
        }
        said.textContent = word === '' ? first : `“${word}”: ${(share * 100).toFixed(2)} % in ${found.length} boxes`;
        return share;
    }

    svg.addEventListener('click', (event) => {
        const g = event.target.closest('#graph > g');
        if (g) {
            zoom(boxes.find((box) => box.g === g));
        } else if (event.target === reset) {
            zoom(boxes[0]);
        } else if (event.target === find) {
            const word = prompt('Mark functions whose name has', '');
            if (word !== null) {
                search(word);
            }
        }
    });
    svg.flame = { zoom, search, boxes };
})();
