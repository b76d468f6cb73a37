/* The tables of a call graph: functions and edges by hash, and texts one after another. They are
 * emptied by incrementing an epoch, and never grow. */
#include "graph/graph.h"

static uint32_t hash_of(uint64_t a, uint64_t b) {
    uint64_t h = (a ^ (b << 29 | b >> 35)) * 0x9E3779B97F4A7C15u;
    return (uint32_t)(h >> 32);
}

static uint32_t put_text(graph_state *g, const char *text, size_t len, uint32_t *kept) {
    len = len < GRAPH_NAME_BYTES ? len : GRAPH_NAME_BYTES;
    if (len > GRAPH_TEXT_BYTES - g->text) {
        len = GRAPH_TEXT_BYTES - g->text;
    }
    const uint32_t at = g->text;
    memcpy(g->texts + at, text, len);
    g->text += (uint32_t)len;
    *kept = (uint32_t)len;
    return at;
}

static graph_function *add(graph_state *g, const char *name, size_t len) {
    graph_function *f = &g->function[g->functions++];
    memset(f, 0, sizeof *f);
    f->name = put_text(g, name, len, &f->name_len);
    return f;
}

void samovar_graph_clear(graph_state *g) {
    g->functions = g->edges = g->text = g->depth = g->too_deep = 0;
    g->calls = g->function_lost = g->edge_lost = 0;
    if (++g->epoch == 0) {
        memset(g->function_place, 0, sizeof g->function_place);
        memset(g->edge_place, 0, sizeof g->edge_place);
        g->epoch = 1;
    }
    add(g, ZEND_STRL("(request)"));
    add(g, ZEND_STRL("(other)"));
    /* The request has no caller. A call without an entry of its own counts as a call from
     * (other) to (other). */
    g->edge[0] = (graph_edge){.caller = GRAPH_ROOT, .callee = GRAPH_ROOT};
    g->edge[GRAPH_OTHER] = (graph_edge){.caller = GRAPH_OTHER, .callee = GRAPH_OTHER};
    g->edges = 2;
}

/* Writes the name of a function: `App\Foo::bar`, `{closure}` with its line, or the file's name
 * for the code of a file itself. */
static size_t name_of(const zend_function *f, char *to, size_t room) {
    const zend_string *name = f->common.function_name;
    const zend_class_entry *scope = f->common.scope;
    const bool is_user = f->type == ZEND_USER_FUNCTION;
    int len;
    if (!name) {
        const char *file = is_user && f->op_array.filename ? ZSTR_VAL(f->op_array.filename) : "?";
        len = snprintf(to, room, "{file} %s", file);
    } else if (is_user && (f->common.fn_flags & ZEND_ACC_CLOSURE)) {
        len = snprintf(to, room, "%s%s{closure}:%u", scope ? ZSTR_VAL(scope->name) : "",
                       scope ? "::" : "", f->op_array.line_start);
    } else {
        len = snprintf(to, room, "%s%s%s", scope ? ZSTR_VAL(scope->name) : "", scope ? "::" : "",
                       ZSTR_VAL(name));
    }
    return len < 0 ? 0 : (size_t)len < room ? (size_t)len : room - 1;
}

static uint32_t write_down(graph_state *g, const zend_function *f, uintptr_t key, uintptr_t check) {
    if (g->functions == GRAPH_FUNCTIONS_MAX || GRAPH_TEXT_BYTES - g->text < 2 * GRAPH_NAME_BYTES) {
        g->function_lost++;
        return GRAPH_OTHER;
    }
    char name[GRAPH_NAME_BYTES + 1];
    graph_function *to = add(g, name, name_of(f, name, sizeof name));
    to->key = key;
    to->check = check;
    to->kind = GRAPH_INTERNAL;
    if (f->type == ZEND_USER_FUNCTION) {
        to->kind = GRAPH_USER;
        to->line = f->op_array.line_start;
        if (f->op_array.filename) {
            to->file = put_text(g, ZSTR_VAL(f->op_array.filename), ZSTR_LEN(f->op_array.filename),
                                &to->file_len);
        }
    }
    return (uint32_t)(to - g->function);
}

/* Closures are copies of one function, so a function is identified by its code. Other code may
 * be at the address of freed code, so the name and the line must be the same, too. */
uint32_t samovar_graph_function(graph_state *g, const zend_function *f) {
    uintptr_t key, check;
    if (f->type == ZEND_USER_FUNCTION) {
        key = (uintptr_t)f->op_array.opcodes;
        check = (uintptr_t)f->common.function_name ^ (uintptr_t)f->common.scope << 1 ^
                (uintptr_t)f->op_array.filename << 2 ^ f->op_array.line_start;
    } else {
        key = (uintptr_t)f->internal_function.handler;
        check = (uintptr_t)f->common.function_name ^ (uintptr_t)f->common.scope << 1;
    }
    const uint32_t mask = 2 * GRAPH_FUNCTIONS_MAX - 1;
    uint32_t at = hash_of(key, check) & mask;
    /* At least half of the places are free, so the loop ends. */
    for (;; at = (at + 1) & mask) {
        graph_place *place = &g->function_place[at];
        if (place->epoch != g->epoch) {
            const uint32_t new = write_down(g, f, key, check);
            if (new != GRAPH_OTHER) {
                *place = (graph_place){g->epoch, new};
            }
            return new;
        }
        const graph_function *found = &g->function[place->at];
        if (found->key == key && found->check == check) {
            return place->at;
        }
    }
}

uint32_t samovar_graph_edge(graph_state *g, uint32_t caller, uint32_t callee) {
    const uint32_t mask = 2 * GRAPH_EDGES_MAX - 1;
    uint32_t at = hash_of(caller, callee) & mask;
    for (;; at = (at + 1) & mask) {
        graph_place *place = &g->edge_place[at];
        if (place->epoch != g->epoch) {
            if (g->edges == GRAPH_EDGES_MAX) {
                g->edge_lost++;
                return GRAPH_OTHER;
            }
            g->edge[g->edges] = (graph_edge){.caller = caller, .callee = callee};
            *place = (graph_place){g->epoch, g->edges};
            return g->edges++;
        }
        const graph_edge *found = &g->edge[place->at];
        if (found->caller == caller && found->callee == callee) {
            return place->at;
        }
    }
}
