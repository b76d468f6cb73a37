// Connects the graph of flame.js with the texts and buttons of the SVG file.
(() => {
    const svg = document.querySelector('svg');
    const [said, reset, find] = ['said', 'reset', 'find'].map((id) => document.getElementById(id));
    const first = said.textContent;
    const boxes = document.querySelectorAll('#graph > g');
    const graph = flameGraph(boxes, { margin: 10, width: 1180, letter: 7 });
    const zoom = (to) => {
        const title = graph.zoom(to);
        reset.setAttribute('visibility', title ? 'visible' : 'hidden');
        said.textContent = title ?? first;
    };
    const search = (word) => {
        const { share, text } = graph.mark(word);
        said.textContent = text || first;
        return share;
    };
    svg.addEventListener('click', (event) => {
        const g = event.target.closest('#graph > g');
        if (g) {
            zoom(graph.boxOf(g));
        } else if (event.target === reset) {
            zoom(graph.boxes[0]);
        } else if (event.target === find) {
            const word = prompt('Mark functions whose name contains', '');
            if (word !== null) {
                search(word);
            }
        }
    });
    svg.flame = { zoom, search, boxes: graph.boxes };
})();
