/* Memory that the Zend heap maps: chunks of 2 MiB, and blocks for larger allocations. It comes
 * from one area that survives rollbacks, so that a page once touched costs the next request no
 * fault.
 *
 * The Zend heap requires only that the first page of a new chunk is zero. Other code that maps
 * memory of the same shape requires more, so the heap is identified by the place in its code
 * that calls mmap(). That place is learned from a large block that is allocated at the start.
 * Memory that only a rare large request has needed goes back to the kernel at once. Memory that
 * two of the last requests have needed is kept until the worker has been idle. */
#define _GNU_SOURCE
#include "memory/arena.h"
#include "memory/image.h"
#include <php.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <zend_alloc.h>

enum {
    CALLERS_MAX = 4,
    LEARN_BYTES = 3 << 20,
    IDLE_S = 1,
    IDLE_UNITS = 1 /* kept by an idle worker */
};

/* ---- callers of mmap() --------------------------------------------------------------------- */

static const void *callers[CALLERS_MAX];
static volatile bool learning;

void samovar_arena_called_from(const void *caller) {
    for (int i = 0; learning && i < CALLERS_MAX && callers[i] != caller; i++) {
        if (!callers[i]) {
            callers[i] = caller;
        }
    }
}

bool samovar_arena_is_caller(const void *caller) {
    for (int i = 0; i < CALLERS_MAX && callers[i]; i++) {
        if (callers[i] == caller) {
            return true;
        }
    }
    return false;
}

/* Allocates a block and grows it in place. Chunks are mapped from the same place as blocks. */
void samovar_arena_learn(void) {
    if (!is_zend_mm()) {
        return;
    }
    /* Independent of the memory limit of requests. */
    zend_set_memory_limit(SIZE_MAX / 2);
    learning = true;
    void *volatile block = emalloc(LEARN_BYTES);
    block = erealloc(block, 2 * LEARN_BYTES);
    learning = false;
    efree(block);
    zend_memory_reset_peak_usage();
    zend_set_memory_limit(PG(memory_limit));
}

/* ---- units --------------------------------------------------------------------------------- */

static uint32_t units_of(size_t len) {
    return (uint32_t)((len + SAMOVAR_CHUNK_BYTES - 1) / SAMOVAR_CHUNK_BYTES);
}

/* Returns the bits of `count` units from `first` on. */
static uint64_t mask(uint32_t first, uint32_t count) {
    return (count >= 64 ? ~0ULL : (1ULL << count) - 1) << first;
}

static char *unit_at(const arena_state *a, uint32_t unit) {
    return a->at + (size_t)unit * SAMOVAR_CHUNK_BYTES;
}

static void use(arena_state *a, uint32_t first, size_t len) {
    const uint32_t end = first + units_of(len);
    a->used |= mask(first, end - first);
    a->lengths[first] = len;
    a->peak = end > a->peak ? end : a->peak;
    a->filled = end > a->filled ? end : a->filled;
}

static void *take_anywhere(arena_state *a, size_t len) {
    const uint32_t count = units_of(len);
    for (uint32_t first = 0; first + count <= ARENA_UNITS; first++) {
        if (!(a->used & mask(first, count))) {
            use(a, first, len);
            return unit_at(a, first);
        }
    }
    return NULL;
}

/* Returns the first unit of the block that ends at `end`, ARENA_UNITS if there is none. */
static uint32_t block_until(const arena_state *a, const char *end) {
    for (uint32_t first = 0; first < ARENA_UNITS; first++) {
        if (a->lengths[first] > 0 && unit_at(a, first) + a->lengths[first] == end) {
            return first;
        }
    }
    return ARENA_UNITS;
}

/* Grows the block that ends at `at`, if the memory after it is free. */
static void *take_at(arena_state *a, char *at, size_t len) {
    const uint32_t first = block_until(a, at);
    if (first == ARENA_UNITS) {
        return NULL;
    }
    const size_t whole = a->lengths[first] + len;
    const uint32_t had = units_of(a->lengths[first]), needs = units_of(whole);
    if (first + needs > ARENA_UNITS || (needs > had && a->used & mask(first + had, needs - had))) {
        return NULL;
    }
    use(a, first, whole);
    return at;
}

void *samovar_arena_take(arena_state *a, char *at, size_t len) {
    if (!a->at || len == 0 || len > (size_t)ARENA_UNITS * SAMOVAR_CHUNK_BYTES) {
        return NULL;
    }
    if (at) {
        return take_at(a, at, len);
    }
    char *block = len >= SAMOVAR_CHUNK_BYTES ? take_anywhere(a, len) : NULL;
    if (block && len == SAMOVAR_CHUNK_BYTES) {
        memset(block, 0, IMAGE_PAGE);
    }
    return block;
}

bool samovar_arena_give_back(arena_state *a, char *at, size_t len) {
    const char *end = a->at + (size_t)ARENA_UNITS * SAMOVAR_CHUNK_BYTES;
    if (!a->at || at >= end || at + len <= a->at) {
        return false;
    }
    /* Only the end of a block is given back. Memory freed in its middle comes back with the
     * rollback. */
    const uint32_t first = block_until(a, at + len);
    if (first < ARENA_UNITS && at >= unit_at(a, first)) {
        const uint32_t had = units_of(a->lengths[first]);
        a->lengths[first] = (size_t)(at - unit_at(a, first));
        const uint32_t left = units_of(a->lengths[first]);
        a->used &= ~mask(first + left, had - left);
    }
    return true;
}

bool samovar_arena_has(const arena_state *a, const char *at) {
    return a->at && at >= a->at && at < a->at + (size_t)ARENA_UNITS * SAMOVAR_CHUNK_BYTES;
}

/* The whole area is mapped. So for the kernel a block in it has no room to grow, and memory that
 * the block gives up would be a hole. */
bool samovar_arena_resize(arena_state *a, char *at, size_t len, size_t new_len) {
    return new_len > len ? samovar_arena_take(a, at + len, new_len - len) != NULL
                         : samovar_arena_give_back(a, at + new_len, len - new_len);
}

/* ---- memory that is kept ------------------------------------------------------------------- */

/* Maps the area. Without it (no address space left) the heap's mappings are like all others. */
void samovar_arena_start(arena_state *a) {
    const size_t unit = SAMOVAR_CHUNK_BYTES;
    char *at = (char *)syscall(SYS_mmap, NULL, (ARENA_UNITS + 1) * unit, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED && callers[0]) {
        a->at = (char *)(((uintptr_t)at + unit - 1) & ~(uintptr_t)(unit - 1));
    }
}

/* Returns false if the kernel has kept the memory. */
static bool drop_from(arena_state *a, uint32_t unit) {
    if (a->filled <= unit) {
        return true;
    }
    const size_t len = (size_t)(a->filled - unit) * SAMOVAR_CHUNK_BYTES;
    a->filled = unit;
    return syscall(SYS_madvise, unit_at(a, unit), len, MADV_DONTNEED) == 0;
}

/* Returns the second largest peak of the last requests. */
static uint32_t usual_peak(const arena_state *a) {
    uint32_t most = 0, second = 0;
    for (int i = 0; i < ARENA_HISTORY; i++) {
        const uint32_t peak = a->peaks[i];
        second = peak > most ? most : peak > second ? peak : second;
        most = peak > most ? peak : most;
    }
    return second;
}

bool samovar_arena_restore(arena_state *a) {
    if (!a->at || (a->peak == 0 && a->filled == 0)) {
        return true;
    }
    a->peaks[a->turn++ % ARENA_HISTORY] = (uint8_t)a->peak;
    for (uint32_t unit = 0; unit < a->peak; unit++) {
        a->lengths[unit] = 0;
    }
    a->used = 0;
    a->peak = 0;
    a->idle_since = 0;
    return drop_from(a, usual_peak(a));
}

/* Units in use belong to the request that is about to begin: none, or the first ones. */
void samovar_arena_idle(arena_state *a) {
    const uint32_t busy = a->used ? 64 - (uint32_t)__builtin_clzll(a->used) : 0;
    const uint32_t keep = busy > IDLE_UNITS ? busy : IDLE_UNITS;
    if (a->filled <= keep) {
        return;
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (a->idle_since == 0) {
        a->idle_since = now.tv_sec;
    } else if (now.tv_sec - a->idle_since > IDLE_S) {
        drop_from(a, keep);
        memset(a->peaks, 0, sizeof a->peaks);
    }
}
