/* take → finish: each request of a worker that traces has its own graph. */
#include "graph/allocations.h"
#include "graph/graph.h"

void samovar_graph_install(void) {
    samovar_graph = samovar_shared_memory(sizeof *samovar_graph);
}

void samovar_graph_forked(void) {
    samovar_graph = NULL;
}

void samovar_graph_open(void) {
    if (samovar_graph) {
        samovar_graph_begin(samovar_graph);
        samovar_graph_allocations_begin(samovar_graph);
    }
}

const uint8_t *samovar_graph_close(const samovar_head *head, size_t peak_bytes, size_t *len) {
    graph_state *g = samovar_graph;
    if (!g || !g->is_on) {
        return NULL;
    }
    samovar_graph_allocations_end();
    samovar_graph_end(g);
    *len = samovar_graph_write(g, head, peak_bytes);
    return (const uint8_t *)g->report;
}
