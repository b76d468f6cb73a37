/* finish: writes the graph of a request as text, for the reader in the server (crates/profile).
 * The fields of a line are separated by tabs; no text contains a tab or a newline. */
#include "graph/graph.h"
#include "insight/request_accounting.h"
#include <inttypes.h>
#include <stdarg.h>

typedef struct {
    char *at;
    size_t len;
} writing;

static void put(writing *to, const char *format, ...) {
    va_list values;
    va_start(values, format);
    const int len = vsnprintf(to->at + to->len, GRAPH_REPORT_BYTES - to->len, format, values);
    va_end(values);
    const size_t room = GRAPH_REPORT_BYTES - to->len;
    to->len += len < 0 ? 0 : (size_t)len < room ? (size_t)len : room - 1;
}

static void put_text(writing *to, const char *text, size_t len) {
    for (size_t i = 0; i < len && to->len < GRAPH_REPORT_BYTES - 1; i++) {
        const unsigned char c = (unsigned char)text[i];
        to->at[to->len++] = c < ' ' || c == 127 ? ' ' : (char)c;
    }
}

static void put_str(writing *to, const samovar_head *head, samovar_str s) {
    put(to, "\t");
    put_text(to, samovar_text(head, s), s.off ? s.len : 0);
}

static void put_request(writing *to, const samovar_head *head) {
    put(to, "q");
    put_str(to, head, head->request_id);
    put_str(to, head, head->method);
    put_str(to, head, head->target);
    put_str(to, head, head->script_name);
    put(to, "\t");
    const request_accounting_state *l = samovar_request_accounting;
    if (l) {
        put_text(to, l->route.text, l->route.len);
    }
    put(to, "\n");
}

static void put_function(writing *to, const graph_state *g, const graph_function *f) {
    put(to,
        "f\t%u\t%" PRIu64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64
        "\t%" PRId64 "\t%u\t",
        f->kind, f->calls, f->wall, f->self, f->cpu, f->cpu_self, f->mem, f->mem_self, f->line);
    put_text(to, g->texts + f->file, f->file_len);
    put(to, "\t");
    put_text(to, g->texts + f->name, f->name_len);
    put(to, "\n");
}

size_t samovar_graph_write(graph_state *g, const samovar_head *head, size_t peak_bytes) {
    writing to = {.at = g->report};
    put(&to, "samovar-graph 1\n");
    if (head) {
        put_request(&to, head);
    } else {
        put(&to, "q\t\t\t\t\t(boot)\n");
    }
    for (int kind = 0; kind < GRAPH_KINDS; kind++) {
        const graph_cost *cost = &samovar_graph_costs.of[kind];
        put(&to, "c\t%" PRId64 "\t%" PRId64 "\n", cost->inside, cost->outside);
    }
    put(&to, "r\t%zu\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", peak_bytes, g->calls,
        g->function_lost, g->edge_lost);
    for (uint32_t i = 0; i < g->functions; i++) {
        put_function(&to, g, &g->function[i]);
    }
    for (uint32_t i = GRAPH_OTHER; i < g->edges; i++) {
        const graph_edge *e = &g->edge[i];
        if (e->calls || e->wall) {
            put(&to, "e\t%u\t%u\t%" PRIu64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\n", e->caller,
                e->callee, e->calls, e->wall, e->cpu, e->mem);
        }
    }
    put(&to, "m\t%d\t%" PRIu64 "\n", GRAPH_SAMPLE_BYTES, g->stack_cut);
    for (uint32_t i = 0; i < g->stacks; i++) {
        const graph_stack *stack = &g->stack[i];
        put(&to, "a\t%u\t%u\t%.0f\t%.0f\n", stack->caller, stack->function, stack->bytes,
            stack->count);
    }
    put(&to, "end\n");
    return to.len;
}
