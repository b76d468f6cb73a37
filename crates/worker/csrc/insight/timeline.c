/* Spans of the current request, in shared memory of the worker's own: a rollback keeps them. */
#define _GNU_SOURCE
#include "insight/timeline.h"
#include "boundary.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

timeline_state *samovar_timeline;

void samovar_timeline_install(void) {
    samovar_timeline = samovar_shared_memory(sizeof *samovar_timeline);
}

/* ---- waiting for a CPU --------------------------------------------------------------------- */

/* Reads the second number of the file: ns on the run queue. Returns 0 if the kernel does not count
 * them. Calls the kernel, because our functions of these names belong to the application. */
static uint64_t delay_so_far(void) {
    char text[96];
    const int error = errno;
    const long fd =
        syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) {
        errno = error;
        return 0;
    }
    const long len = syscall(SYS_read, fd, text, sizeof text - 1);
    syscall(SYS_close, fd);
    errno = error;
    if (len <= 0) {
        return 0;
    }
    text[len] = 0;
    const char *second = strchr(text, ' ');
    return second ? strtoull(second, NULL, 10) : 0;
}

/* Costs a fraction of the exact clock, and is exact enough to find out whether a request was short.
 */
static uint64_t coarse_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t samovar_timeline_delay_ns(void) {
    timeline_state *t = samovar_timeline;
    const uint64_t now = coarse_ns();
    if (!t || now < t->taken_ns || now - t->taken_ns < DELAY_MEASURED_NS) {
        return 0;
    }
    const uint64_t before = t->delay_ns;
    t->delay_ns = delay_so_far();
    t->read_ns = now;
    const uint64_t ns = t->delay_ns > before ? t->delay_ns - before : 0;
    return ns < now - t->taken_ns ? ns : now - t->taken_ns;
}

/* ---- spans --------------------------------------------------------------------------------- */

/* A busy worker reads the counter a hundred times a second, not in each request. */
void samovar_timeline_open(uint64_t taken_ns) {
    timeline_state *t = samovar_timeline;
    if (!t) {
        return;
    }
    t->count = t->dropped = 0;
    t->shortest_ns = 0;
    t->taken_ns = taken_ns;
    if (taken_ns - t->read_ns > DELAY_KNOWN_NS) {
        t->read_ns = taken_ns;
        t->delay_ns = delay_so_far();
    }
}

/* Replaces the shortest span by a longer one. */
static void replace(timeline_state *t, const timeline_span *span) {
    uint32_t shortest = 0;
    for (uint32_t i = 1; i < SPANS_MAX; i++) {
        shortest = t->spans[i].ns < t->spans[shortest].ns ? i : shortest;
    }
    t->shortest_ns = t->spans[shortest].ns;
    if (span->ns > t->shortest_ns) {
        t->spans[shortest] = *span;
    }
}

void samovar_timeline_add(span_kind kind, uint32_t index, uint64_t from_ns, uint64_t ns) {
    timeline_state *t = samovar_timeline;
    if (!t) {
        return;
    }
    const timeline_span span = {
        .from_ns = from_ns, .ns = ns, .index = (uint16_t)index, .kind = (uint8_t)kind};
    if (t->count < SPANS_MAX) {
        t->spans[t->count++] = span;
        return;
    }
    t->dropped++;
    if (ns > t->shortest_ns) {
        replace(t, &span);
    }
}
