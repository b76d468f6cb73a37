/* run: builds a graph from the begins and ends of calls that PHP reports.
 *
 * Times are those of the kernel's clock minus the time used by the instrumentation. `spent`
 * grows with each call by the calibrated cost (calibrate.c). Where the cost is rare and high, it
 * is measured on the spot. So the time of a caller is right, no matter how many calls it
 * contains. */
#define _GNU_SOURCE
#include "graph/graph.h"
#include <zend_observer.h>
#include <time.h>

graph_state *samovar_graph;
graph_costs samovar_graph_costs;

static inline int64_t read_clock(clockid_t which) {
    struct timespec t;
    clock_gettime(which, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t samovar_graph_clock(void) {
    return read_clock(CLOCK_MONOTONIC);
}

/* Adds the time since `then` to the cost of the instrumentation. A preemption in between can
 * happen anywhere. It is not a cost of the instrumentation, and the next reading of the CPU time
 * detects it. */
static int64_t spend_since(graph_state *g, int64_t then) {
    const int64_t took = samovar_graph_clock() - then;
    const int64_t cost = took < GRAPH_SPENT_MAX_NS ? took : GRAPH_SPENT_MAX_NS;
    g->spent += cost;
    return cost;
}

/* A reading of the CPU time costs as much as ten calls. So it is read only when enough time has
 * passed for a wait or a preemption. The time in which the thread did not run is charged to the
 * function that has just run. */
static void look_at_cpu(graph_state *g, int64_t now) {
    const int64_t cpu = read_clock(CLOCK_THREAD_CPUTIME_ID);
    g->off += (now - g->looked_wall) - (cpu - g->looked_cpu);
    const int64_t cost = spend_since(g, now);
    g->looked_wall = now + cost;
    g->looked_cpu = cpu + cost;
}

static inline bool is_cpu_due(const graph_state *g, int64_t now) {
    return now - g->looked_wall >= GRAPH_CPU_EVERY_NS;
}

static void push(graph_state *g, zend_execute_data *call, uint32_t function, uint32_t edge,
                 int64_t wall) {
    graph_frame *frame = &g->frame[g->depth++];
    frame->call = call;
    frame->function = function;
    frame->edge = edge;
    frame->last_edge = 0;
    frame->wall = wall;
    frame->cpu = wall - g->off;
    frame->mem = (int64_t)zend_memory_usage(false);
    frame->in_wall = frame->in_cpu = frame->in_mem = 0;
    g->function[function].active++;
    g->edge[edge].active++;
}

static void pop(graph_state *g, int64_t wall) {
    const graph_frame *frame = &g->frame[--g->depth];
    graph_function *f = &g->function[frame->function];
    graph_edge *edge = &g->edge[frame->edge];
    const int64_t took = wall - frame->wall;
    const int64_t ran = wall - g->off - frame->cpu;
    const int64_t grown = (int64_t)zend_memory_usage(false) - frame->mem;
    f->self += took - frame->in_wall;
    f->cpu_self += ran - frame->in_cpu;
    f->mem_self += grown - frame->in_mem;
    /* Of nested calls of the same function, only the outermost is counted. */
    if (--f->active == 0) {
        f->wall += took;
        f->cpu += ran;
        f->mem += grown;
    }
    if (--edge->active == 0) {
        edge->wall += took;
        edge->cpu += ran;
        edge->mem += grown;
    }
    if (g->depth) {
        graph_frame *caller = &g->frame[g->depth - 1];
        caller->in_wall += took;
        caller->in_cpu += ran;
        caller->in_mem += grown;
    }
}

/* Returns the number of our frames up to that call. 0: it has no frame. */
static uint32_t depth_of(const graph_state *g, const zend_execute_data *call) {
    const uint32_t least = g->depth > GRAPH_LOOK_MAX ? g->depth - GRAPH_LOOK_MAX : 0;
    for (uint32_t depth = g->depth; depth > least; depth--) {
        if (g->frame[depth - 1].call == call) {
            return depth;
        }
    }
    return 0;
}

static bool is_observed(const zend_execute_data *call) {
    return call->func &&
           (call->func->type == ZEND_USER_FUNCTION || call->func->type == ZEND_INTERNAL_FUNCTION);
}

/* Generators and fibers leave calls open that do not continue, and continue in calls whose begin
 * was reported long ago. The chain of callers is authoritative: frames that are not in it are
 * closed, and callers without a frame get one. */
static void find_caller(graph_state *g, zend_execute_data *caller, int64_t wall) {
    zend_execute_data *missing[GRAPH_ENTER_MAX];
    uint32_t missed = 0, found = 0;
    for (int looks = 0; caller && looks < GRAPH_LOOK_MAX; looks++) {
        found = depth_of(g, caller);
        if (found) {
            break;
        }
        if (is_observed(caller) && missed < GRAPH_ENTER_MAX) {
            missing[missed++] = caller;
        }
        caller = caller->prev_execute_data;
    }
    /* The first frame is the request. */
    found = found ? found : 1;
    while (g->depth > found) {
        pop(g, wall);
    }
    while (missed && g->depth < GRAPH_DEPTH_MAX) {
        zend_execute_data *call = missing[--missed];
        const uint32_t function = samovar_graph_function(g, call->func);
        const uint32_t edge = samovar_graph_edge(g, g->frame[g->depth - 1].function, function);
        push(g, call, function, edge, wall);
    }
}

static ZEND_COLD void begin_rarely(graph_state *g, zend_execute_data *call, int64_t now) {
    if (is_cpu_due(g, now)) {
        look_at_cpu(g, now);
        now = g->looked_wall;
    }
    if (g->frame[g->depth - 1].call != call->prev_execute_data) {
        find_caller(g, call->prev_execute_data, now - g->spent);
        spend_since(g, now);
    }
}

static void on_begin(zend_execute_data *call) {
    graph_state *g = samovar_graph;
    if (!g || !g->is_on) {
        return;
    }
    int64_t now = samovar_graph_clock();
    if (UNEXPECTED(g->depth >= GRAPH_DEPTH_MAX - GRAPH_ENTER_MAX)) {
        g->too_deep++;
        return;
    }
    int64_t wall = now - g->spent;
    if (UNEXPECTED(g->frame[g->depth - 1].call != call->prev_execute_data || is_cpu_due(g, now))) {
        begin_rarely(g, call, now);
    }
    graph_frame *caller = &g->frame[g->depth - 1];
    graph_edge *last = &g->edge[caller->last_edge];
    const uint32_t known = g->functions + g->edges;
    const uint32_t function = samovar_graph_function(g, call->func);
    uint32_t edge = caller->last_edge;
    if (last->callee != function || last->caller != caller->function) {
        edge = samovar_graph_edge(g, caller->function, function);
        caller->last_edge = edge;
    }
    g->function[function].calls++;
    g->edge[edge].calls++;
    g->calls++;
    push(g, call, function, edge, wall);
    g->spent += samovar_graph_costs.of[g->function[function].kind].inside;
    if (UNEXPECTED(known != g->functions + g->edges)) {
        /* A new function or edge was recorded. */
        spend_since(g, now);
    }
}

static void on_end(zend_execute_data *call, zval *returned) {
    graph_state *g = samovar_graph;
    if (!g || !g->is_on) {
        return;
    }
    int64_t now = samovar_graph_clock();
    if (UNEXPECTED(g->frame[g->depth - 1].call != call)) {
        if (g->too_deep) {
            g->too_deep--;
            return;
        }
        const uint32_t depth = depth_of(g, call);
        if (depth < 2) {
            return; /* It began before the request, or in an abandoned fiber. */
        }
        while (g->depth > depth) {
            pop(g, now - g->spent);
        }
        spend_since(g, now);
        now = samovar_graph_clock();
    }
    int64_t wall = now - g->spent;
    if (is_cpu_due(g, now)) {
        look_at_cpu(g, now);
    }
    const uint8_t kind = g->function[g->frame[g->depth - 1].function].kind;
    pop(g, wall);
    g->spent += samovar_graph_costs.of[kind].outside;
}

/* Observes all code: a worker's calls between requests are reported, too, and ignored by the
 * first check. */
static zend_observer_fcall_handlers observe(zend_execute_data *call) {
    return (zend_observer_fcall_handlers){on_begin, on_end};
}

void samovar_graph_startup(void) {
    zend_observer_fcall_register(observe);
}

void samovar_graph_begin(graph_state *g) {
    samovar_graph_clear(g);
    g->spent = g->off = 0;
    g->begun = g->looked_wall = samovar_graph_clock();
    g->looked_cpu = read_clock(CLOCK_THREAD_CPUTIME_ID);
    push(g, NULL, GRAPH_ROOT, 0, g->begun);
    g->function[GRAPH_ROOT].calls = 1;
    g->is_on = true;
}

void samovar_graph_end(graph_state *g) {
    g->is_on = false;
    const int64_t now = samovar_graph_clock();
    look_at_cpu(g, now);
    const int64_t wall = g->looked_wall - g->spent;
    while (g->depth) {
        pop(g, wall);
    }
}
