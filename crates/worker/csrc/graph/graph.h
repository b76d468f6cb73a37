/* The call graph of one request, as recorded by the workers of a tracing template: the calls
 * between functions, their number and their cost.
 *
 * Only such a template has PHP's observer on (samovar_settings->traces); elsewhere none of this
 * code runs. The memory is shared memory of the worker's own, so no rollback has to copy it. */
#ifndef SAMOVAR_GRAPH_GRAPH_H
#define SAMOVAR_GRAPH_GRAPH_H

#include "boundary.h"
#include <php.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    GRAPH_FUNCTIONS_MAX = 8192, /* per request; the rest is (other) */
    GRAPH_EDGES_MAX = 32768,    /* the same */
    GRAPH_DEPTH_MAX = 4096,     /* deeper calls are part of the call at this depth */
    GRAPH_TEXT_BYTES = 2 << 20, /* names and files */
    GRAPH_NAME_BYTES = 512,     /* of one name or file */
    GRAPH_REPORT_BYTES = 8 << 20,
    GRAPH_LOOK_MAX = 256,       /* callers that are searched for a known one */
    GRAPH_ENTER_MAX = 32,       /* callers without a frame that get one again */
    GRAPH_CPU_EVERY_NS = 20000, /* between two readings of the CPU time */
    GRAPH_SPENT_MAX_NS = 5000,  /* maximum of one measured cost of the instrumentation */
    GRAPH_SAMPLE_BYTES = 8192,  /* mean of the allocated bytes between two samples */
    GRAPH_STACKS_MAX = 8192,    /* stacks of sampled allocations, and their beginnings */
    GRAPH_STACK_DEPTH_MAX = 128 /* innermost calls of such a stack */
};

/* Cost that the instrumentation adds to a call, in ns: between its two readings of the clock,
 * and around them. */
typedef struct {
    int64_t inside, outside;
} graph_cost;

/* Kinds of functions. The cost of a call depends on the kind. */
enum { GRAPH_USER = 0, GRAPH_INTERNAL = 1, GRAPH_KINDS = 2 };

typedef struct {
    graph_cost of[GRAPH_KINDS];
    bool is_known;
} graph_costs;

/* Written by the template before its first worker is forked. */
extern graph_costs samovar_graph_costs;

typedef struct {
    uintptr_t key, check;
    uint32_t name, name_len, file, file_len, line;
    uint8_t kind;
    uint32_t active; /* calls of it that have not ended */
    uint64_t calls;
    int64_t wall, self, cpu, cpu_self, mem, mem_self;
} graph_function;

typedef struct {
    uint32_t caller, callee, active;
    uint64_t calls;
    int64_t wall, cpu, mem;
} graph_edge;

typedef struct {
    zend_execute_data *call;
    uint32_t edge, function, last_edge;
    int64_t wall, cpu, mem;          /* at its begin, without the instrumentation's time */
    int64_t in_wall, in_cpu, in_mem; /* of the calls that it has made */
} graph_frame;

/* A stack in which memory was allocated: that of its caller, and a function. The estimates are
 * without callees. */
typedef struct {
    uint32_t caller, function;
    double bytes, count;
} graph_stack;

typedef struct {
    uint32_t epoch, at;
} graph_place;

typedef struct {
    bool is_on;
    uint32_t epoch;
    uint32_t depth, too_deep;
    uint32_t functions, edges, text;
    uint64_t calls;
    int64_t begun, spent; /* clock at the begin; time used by the instrumentation */
    int64_t off;          /* time in which the thread did not run */
    int64_t looked_wall, looked_cpu;
    uint64_t function_lost, edge_lost;
    graph_frame frame[GRAPH_DEPTH_MAX];
    graph_function function[GRAPH_FUNCTIONS_MAX];
    graph_edge edge[GRAPH_EDGES_MAX];
    graph_place function_place[2 * GRAPH_FUNCTIONS_MAX];
    graph_place edge_place[2 * GRAPH_EDGES_MAX];
    uint32_t stacks;
    uint64_t stack_cut;  /* samples whose stack had no room: they count for its beginning */
    double until_sample; /* bytes */
    uint64_t random;
    graph_stack stack[GRAPH_STACKS_MAX];
    graph_place stack_place[2 * GRAPH_STACKS_MAX];
    char texts[GRAPH_TEXT_BYTES];
    char report[GRAPH_REPORT_BYTES];
} graph_state;

/* Indexes of the first functions of each graph, and of the first edges. */
enum { GRAPH_ROOT = 0, GRAPH_OTHER = 1 };

/* NULL if this process records no call graphs. */
extern graph_state *samovar_graph;

/* Called in MINIT of a tracing template: from now on PHP reports calls. */
void samovar_graph_startup(void);
/* Begins and ends a graph. */
void samovar_graph_begin(graph_state *g);
void samovar_graph_end(graph_state *g);
/* Returns the index of the function in the graph. */
uint32_t samovar_graph_function(graph_state *g, const zend_function *function);
/* Returns the index of the edge. */
uint32_t samovar_graph_edge(graph_state *g, uint32_t caller, uint32_t callee);
/* Empties the tables. */
void samovar_graph_clear(graph_state *g);
/* Samples the allocations of PHP's heap until the graph or the PHP request ends. */
void samovar_graph_allocations_begin(graph_state *g);
/* Writes the graph. Returns its length. */
size_t samovar_graph_write(graph_state *g, const samovar_head *head, size_t peak_bytes);

int64_t samovar_graph_clock(void);

#endif
