/* Collects garbage cycles of booted applications' requests between two requests.
 *
 * PHP's collector starts when the ten thousandth possible root is recorded: in the middle of a
 * request, whose visitor waits while the whole application is searched. In a resident worker it
 * runs after a response instead. If the worker has time for it, a small number of roots is
 * enough; if it has none, many more are needed. Below a checkpoint it need not run at all,
 * because the rollback removes all garbage. During a request it still runs when code calls it,
 * and when memory grows. */
#include "model/collect.h"
#include "heap_walk/walk.h"
#include "memory/persistent.h"
#include "sapi/sapi.h"
#include <php.h>
#include <time.h>
#include <zend_exceptions.h>
#include <zend_gc.h>

enum {
    IDLE_ROOTS = 2000,    /* worth a collection when there is time */
    BUSY_ROOTS = 40000,   /* collected even when there is none */
    ROOTS_MAX = 100000,   /* of one request: eight bytes each */
    IDLE_NS = 1000 * 1000 /* of waiting: this worker has time */
};

/* Maximum growth of the heap by requests before their garbage is collected. */
#define GROWTH_BYTES_MAX ((size_t)16 << 20)
#define GROWTH_BYTES_MAX_BELOW ((size_t)64 << 20)

static int (*collect)(void); /* PHP's, or that of an extension that counts its runs */
static size_t used_before;   /* bytes of the heap after the last run */
static uint64_t asked_at_ns; /* when the worker began to wait; 0: not needed */
static bool has_time;

static uint32_t roots(void) {
    zend_gc_status status;
    zend_gc_get_status(&status);
    return status.num_roots;
}

static int run(void) {
    const int found = collect();
    used_before = zend_memory_usage(0);
    return found;
}

/* Returns true if code has called PHP's function of that name. */
static bool is_asked_for(void) {
    const zend_execute_data *frame = EG(current_execute_data);
    return frame && frame->func && frame->func->type == ZEND_INTERNAL_FUNCTION &&
           frame->func->common.function_name &&
           zend_string_equals_literal(frame->func->common.function_name, "gc_collect_cycles");
}

/* At most a quarter of the application's memory limit. */
static size_t growth_max(void) {
    const size_t most = samovar_persistent ? GROWTH_BYTES_MAX_BELOW : GROWTH_BYTES_MAX;
    const size_t share = PG(memory_limit) > 0 ? (size_t)PG(memory_limit) / 4 : most;
    return share < most ? share : most;
}

static bool has_grown(void) {
    return zend_memory_usage(0) > used_before + growth_max();
}

/* Takes the place of PHP's collector. If this finds nothing, PHP waits for ten thousand more
 * roots. */
static int collect_later(void) {
    const bool in_request = samovar_current != NULL; /* otherwise this file is the caller */
    return !in_request || samovar_heap_walk_collects || is_asked_for() || has_grown() ||
                   roots() >= ROOTS_MAX
               ? run()
               : 0;
}

void samovar_collect_begin(void) {
    if (!collect) {
        collect = gc_collect_cycles;
        gc_collect_cycles = collect_later;
    }
    used_before = zend_memory_usage(0);
}

void samovar_collect_end(void) {
    if (collect && gc_collect_cycles == collect_later) {
        gc_collect_cycles = collect;
        collect = NULL;
    }
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Destructors run here, as they would at the end of a script. */
static bool run_between(void) {
    zend_try {
        run();
    }
    zend_end_try();
    if (EG(exception) && zend_is_unwind_exit(EG(exception))) {
        zend_clear_exception();
    } else if (EG(exception)) {
        zend_exception_error(EG(exception), E_ERROR);
    }
    return !CG(unclean_shutdown);
}

bool samovar_collect_between(void) {
    asked_at_ns = 0;
    const uint32_t noted = collect && !samovar_persistent && gc_enabled() ? roots() : 0;
    if (noted < IDLE_ROOTS) {
        return true;
    }
    if (has_time || noted >= BUSY_ROOTS || has_grown()) {
        has_time = false;
        return run_between();
    }
    asked_at_ns = now_ns();
    return true;
}

void samovar_collect_waited(void) {
    has_time = asked_at_ns != 0 && now_ns() - asked_at_ns >= IDLE_NS;
}
