/* The clock of all times of a request. */
#ifndef SAMOVAR_INSIGHT_CLOCK_H
#define SAMOVAR_INSIGHT_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t samovar_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

#endif
