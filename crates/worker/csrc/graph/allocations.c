/* run: samples allocations by bytes, each with the stack of its traced calls.
 *
 * Each allocated byte is a sample with the same small probability, independently of all others: the
 * distances between samples are exponential. An allocation of `size` bytes is sampled with the
 * probability p = 1 - exp(-size / GRAPH_SAMPLE_BYTES). A sampled one counts as size / p bytes and
 * 1 / p allocations, so the expected sums are the true ones for any mixture of sizes.
 *
 * The heap's functions are replaced when a graph begins: after the fork, and below the checkpoint.
 * A rollback restores the heap, and with it its own functions. */
#include "graph/graph.h"
#include "graph/allocations.h"
#include <math.h>

/* The heap whose functions are ours; NULL: none. */
static zend_mm_heap *sampled_heap;

/* Returns a number in (0, 1]. The generator is xorshift64*. */
static double random_share(graph_state *g) {
    g->random ^= g->random >> 12;
    g->random ^= g->random << 25;
    g->random ^= g->random >> 27;
    return (double)((g->random * 0x2545F4914F6CDD1Du >> 11) + 1) / (double)(UINT64_C(1) << 53);
}

static void draw_distance(graph_state *g) {
    g->until_sample = -log(random_share(g)) * GRAPH_SAMPLE_BYTES;
}

/* Returns the stack of a call from that stack, which is added if it is new; or the caller's, if
 * there is no room. */
static uint32_t stack_of(graph_state *g, uint32_t caller, uint32_t function) {
    const uint32_t mask = 2 * GRAPH_STACKS_MAX - 1;
    const uint64_t mixed = ((uint64_t)caller << 32 | function) * 0x9E3779B97F4A7C15u;
    /* At least half of the places are free, so the loop ends. */
    for (uint32_t at = (uint32_t)(mixed >> 32) & mask;; at = (at + 1) & mask) {
        graph_place *place = &g->stack_place[at];
        if (place->epoch != g->epoch) {
            if (g->stacks == GRAPH_STACKS_MAX) {
                g->stack_cut++;
                return caller;
            }
            g->stack[g->stacks] = (graph_stack){.caller = caller, .function = function};
            *place = (graph_place){g->epoch, g->stacks};
            return g->stacks++;
        }
        const graph_stack *known = &g->stack[place->at];
        if (known->caller == caller && known->function == function) {
            return place->at;
        }
    }
}

static ZEND_COLD void take_sample(graph_state *g, size_t size) {
    const int64_t begun = samovar_graph_clock();
    uint32_t stack = 0;
    uint32_t depth = g->depth > GRAPH_STACK_DEPTH_MAX ? g->depth - GRAPH_STACK_DEPTH_MAX : 1;
    for (; depth < g->depth; depth++) {
        stack = stack_of(g, stack, g->frame[depth].function);
    }
    const double probability = -expm1(-(double)size / GRAPH_SAMPLE_BYTES);
    g->stack[stack].bytes += (double)size / probability;
    g->stack[stack].count += 1 / probability;
    draw_distance(g);
    const int64_t took = samovar_graph_clock() - begun;
    g->spent += took < GRAPH_SPENT_MAX_NS ? took : GRAPH_SPENT_MAX_NS;
}

static inline void look_at_size(size_t size) {
    graph_state *g = samovar_graph;
    if (!g || !g->is_on) {
        return;
    }
    g->until_sample -= (double)size;
    if (UNEXPECTED(g->until_sample < 0) && size > 0) {
        take_sample(g, size);
    }
}

static void *allocate(size_t size ZEND_FILE_LINE_DC ZEND_FILE_LINE_ORIG_DC) {
    look_at_size(size);
    return zend_mm_alloc(sampled_heap, size);
}

static void release(void *block ZEND_FILE_LINE_DC ZEND_FILE_LINE_ORIG_DC) {
    zend_mm_free(sampled_heap, block);
}

/* Only growth is an allocation. */
static void *reallocate(void *block, size_t size ZEND_FILE_LINE_DC ZEND_FILE_LINE_ORIG_DC) {
    const size_t before = block ? zend_mm_block_size(sampled_heap, block) : 0;
    if (size > before) {
        look_at_size(size - before);
    }
    return zend_mm_realloc(sampled_heap, block, size);
}

void samovar_graph_allocations_begin(graph_state *g) {
    void *(*allocates)(size_t) = NULL;
    void (*frees)(void *) = NULL;
    void *(*reallocates)(void *, size_t) = NULL;
    g->stack[0] = (graph_stack){.caller = 0, .function = GRAPH_ROOT};
    g->stacks = 1;
    g->stack_cut = 0;
    g->random = g->random ? g->random : (uint64_t)samovar_graph_clock() | 1;
    draw_distance(g);
    zend_mm_heap *heap = zend_mm_get_heap();
    zend_mm_get_custom_handlers(heap, &allocates, &frees, &reallocates);
    if (allocates || frees || reallocates) {
        return; /* USE_ZEND_ALLOC=0, or another profiler. */
    }
    sampled_heap = heap;
    zend_mm_set_custom_handlers(heap, allocate, release, reallocate);
}

void samovar_graph_allocations_end(void) {
    if (sampled_heap) {
        zend_mm_set_custom_handlers(sampled_heap, NULL, NULL, NULL);
        sampled_heap = NULL;
    }
}
