/* start: measures the cost of the instrumentation on this machine, with this PHP.
 *
 * The same loops run twice: compiled and run as if there were no observer, and with the full
 * instrumentation. The difference is the cost of a call. The time in the graph for a function
 * that does nothing is the part between the two readings of the clock. The minimum of several
 * rounds counts, because any disturbance makes a round longer. The two variants alternate, and
 * continue as long as one of them gets shorter. Otherwise a load on the same core that starts
 * halfway would count as cost of the instrumentation. */
#define _GNU_SOURCE
#include "graph/graph.h"
#include <php_main.h>
#include <SAPI.h>
#include <zend_observer.h>
#include <time.h>

enum {
    ROUNDS = 25, /* the calibration ends after these rounds without a new minimum */
    ROUNDS_MAX = 200,
    CALLS = 4000
};

/* `%s` is the suffix of the names of a variant. */
#define LOOPS                                                                                      \
    "function samovar_nothing_%s() {}"                                                             \
    "function samovar_loop_empty_%s($n) { for ($i = 0; $i < $n; $i++) {} }"                        \
    "function samovar_loop_user_%s($n) { for ($i = 0; $i < $n; $i++) { samovar_nothing_%s(); } }"  \
    "function samovar_loop_internal_%s($n) { for ($i = 0; $i < $n; $i++) { gc_enabled(); } }"

static int64_t cpu_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Returns the CPU time of all its rounds, in ns. Negative: there is no such function. */
static int64_t run(const char *loop, const char *variant) {
    char text[64];
    zval name, returned, count;
    snprintf(text, sizeof text, "samovar_loop_%s_%s", loop, variant);
    ZVAL_STRING(&name, text);
    ZVAL_UNDEF(&returned);
    ZVAL_LONG(&count, CALLS);
    const int64_t from = cpu_now();
    const bool ran = call_user_function(NULL, NULL, &name, &returned, 1, &count) == SUCCESS;
    const int64_t took = cpu_now() - from;
    zval_ptr_dtor(&name);
    zval_ptr_dtor(&returned);
    return ran && !EG(exception) ? took : -1;
}

static bool compile(const char *variant) {
    char text[1024];
    snprintf(text, sizeof text, LOOPS, variant, variant, variant, variant, variant);
    return zend_eval_string(text, NULL, "calibration") == SUCCESS;
}

/* Minimum of all rounds, in ns. */
typedef struct {
    int64_t empty, loop[GRAPH_KINDS], inside[GRAPH_KINDS];
} readings;

static const char *const loops[GRAPH_KINDS] = {"user", "internal"};

/* Keeps the minimum. Returns true if it fell by more than the noise between two equal readings. */
static bool keep_least(int64_t *least, int64_t now) {
    const bool is_less = now >= 0 && now < *least - *least / 64;
    if (now >= 0 && now < *least) {
        *least = now;
    }
    return is_less;
}

/* Reads the times in the graph of the empty functions, which were called from the loop. */
static bool read_graph(const graph_state *g, readings *of) {
    bool is_less = false;
    for (uint32_t at = 0; at < g->functions; at++) {
        const graph_function *f = &g->function[at];
        if (f->calls == CALLS) {
            is_less |= keep_least(&of->inside[f->kind], f->wall);
        }
    }
    return is_less;
}

/* Returns true if there was a new minimum. */
static bool run_round(readings *of, const char *variant, graph_state *g) {
    bool is_less = keep_least(&of->empty, run("empty", variant));
    for (int kind = 0; kind < GRAPH_KINDS; kind++) {
        if (g) {
            samovar_graph_begin(g);
        }
        is_less |= keep_least(&of->loop[kind], run(loops[kind], variant));
        if (g) {
            samovar_graph_end(g);
            is_less |= read_graph(g, of);
        }
    }
    return is_less;
}

static void measure(readings *bare, readings *seen, graph_state *g) {
    const int observed = zend_observer_fcall_op_array_extension;
    int in_vain = 0;
    for (int round = 0; round < ROUNDS_MAX && in_vain < ROUNDS; round++) {
        zend_observer_fcall_op_array_extension = -1;
        samovar_graph = NULL;
        const bool bare_is_less = run_round(bare, "bare", NULL);
        zend_observer_fcall_op_array_extension = observed;
        samovar_graph = g;
        const bool seen_is_less = run_round(seen, "seen", g);
        in_vain = bare_is_less || seen_is_less ? 0 : in_vain + 1;
    }
}

/* Half of the cost of a call without instrumentation is attributed to the callee: entering and
 * leaving it. */
static graph_cost cost_of(const readings *bare, const readings *seen, int kind) {
    const int64_t before = (bare->loop[kind] - bare->empty) / CALLS;
    const int64_t now = (seen->loop[kind] - seen->empty) / CALLS;
    const int64_t all = now > before ? now - before : 0;
    int64_t inside = seen->inside[kind] / CALLS - before / 2;
    inside = inside < 0 ? 0 : inside > all ? all : inside;
    return (graph_cost){.inside = inside, .outside = all - inside};
}

static void calibrate(graph_costs *costs, graph_state *g) {
    const readings none = {INT64_MAX, {INT64_MAX, INT64_MAX}, {INT64_MAX, INT64_MAX}};
    readings bare = none, seen = none;
    /* While PHP sees no observer, it compiles calls that notify none. */
    const int observed = zend_observer_fcall_op_array_extension;
    zend_observer_fcall_op_array_extension = -1;
    const bool has_bare = compile("bare");
    zend_observer_fcall_op_array_extension = observed;
    if (!has_bare || !compile("seen")) {
        return;
    }
    measure(&bare, &seen, g);
    for (int kind = 0; kind < GRAPH_KINDS; kind++) {
        if (bare.loop[kind] == INT64_MAX || seen.inside[kind] == INT64_MAX) {
            return;
        }
        costs->of[kind] = cost_of(&bare, &seen, kind);
    }
    costs->is_known = true;
}

void samovar_graph_calibrate(void *costs) {
    graph_state *g = samovar_shared_memory(sizeof *g);
    if (!g || php_request_startup() != SUCCESS) {
        return;
    }
    zend_first_try {
        calibrate(costs, g);
    }
    zend_end_try();
}

void *samovar_graph_costs_room(void) {
    return samovar_shared_memory(sizeof(graph_costs));
}

bool samovar_graph_adopt(const void *costs) {
    samovar_graph_costs = *(const graph_costs *)costs;
    return samovar_graph_costs.is_known;
}
