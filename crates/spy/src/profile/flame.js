// Zooms a flame graph into the clicked box, and marks boxes by a part of their name. The attributes
// data-x and data-w of a box hold its part of the whole, data-r holds its row. The graph's owner
// connects its buttons: flame_svg.js in a file of its own, assets/flame_page.js on the dashboard.
'use strict';

function flameGraph(elements, { margin, width, letter }) {
    const boxes = [...elements].map((g) => {
        const title = g.querySelector('title').textContent;
        return {
            g,
            x: Number(g.dataset.x),
            w: Number(g.dataset.w),
            row: Number(g.dataset.r),
            name: g.dataset.name ?? title.slice(0, title.lastIndexOf(' — ')),
            bar: g.querySelector('rect'),
            text: g.querySelector('text'),
            title,
        };
    });

    function place(box, left, part) {
        const px = Math.max(0, part * width);
        box.g.style.display = px < 0.2 ? 'none' : '';
        box.bar.setAttribute('x', margin + left * width);
        box.bar.setAttribute('width', px);
        box.text.setAttribute('x', margin + left * width + 3);
        const room = Math.floor((px - 6) / letter);
        const short = room < 3 ? '' : box.name.slice(0, room - 1) + '…';
        box.text.textContent = box.name.length <= room ? box.name : short;
    }

    // Shows one box in full width, with the boxes within it and its callers. Returns its title, or
    // nothing for the whole graph.
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
        return to.row === 0 ? undefined : to.title;
    }

    // Marks boxes. Returns their part of the whole, and a text about them.
    function mark(word) {
        const wanted = word.toLowerCase();
        const found = boxes.filter((box) => wanted && box.name.toLowerCase().includes(wanted));
        boxes.forEach((box) => box.g.classList.toggle('found', found.includes(box)));
        // Boxes within a marked box are counted only once, with it.
        let share = 0, end = -1;
        for (const box of found.slice().sort((a, b) => a.x - b.x || b.w - a.w)) {
            if (box.x >= end - 1e-9) {
                share += box.w;
                end = box.x + box.w;
            }
        }
        const percent = (share * 100).toFixed(2);
        return { share, text: wanted && `“${word}”: ${percent} % in ${found.length} boxes` };
    }

    return { boxes, zoom, mark, boxOf: (g) => boxes.find((box) => box.g === g) };
}
