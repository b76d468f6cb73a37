/* random, rand, drand48 and related functions: libc's generators are seeded when a request first
 * uses them (rollback/reseed.c), not after each rollback. A generator that a request seeds
 * itself keeps its seed.
 *
 * A generator with caller-owned state (random_r, erand48) is left to the caller. */
#define _GNU_SOURCE
#include "interpose/original.h"
#include "rollback/reseed.h"
#include <stdlib.h>

#define DRAWS(type, name)                                                                          \
    type name(void) {                                                                              \
        ORIGINAL(name)                                                                             \
        samovar_reseed_libc();                                                                     \
        return original();                                                                         \
    }

DRAWS(long, random)
DRAWS(int, rand)
DRAWS(double, drand48)
DRAWS(long, lrand48)
DRAWS(long, mrand48)

/* Reseeds first, because the function does not set all of the state, and may return the former
 * state. */
#define SEEDS(type, name, parameters, arguments)                                                   \
    type name parameters {                                                                         \
        ORIGINAL(name)                                                                             \
        samovar_reseed_libc();                                                                     \
        return original arguments;                                                                 \
    }

SEEDS(void, srandom, (unsigned seed), (seed))
SEEDS(void, srand, (unsigned seed), (seed))
SEEDS(char *, initstate, (unsigned seed, char *state, size_t size), (seed, state, size))
SEEDS(char *, setstate, (char *state), (state))
SEEDS(void, srand48, (long seed), (seed))
SEEDS(unsigned short *, seed48, (unsigned short seed[3]), (seed))
SEEDS(void, lcong48, (unsigned short parameters[7]), (parameters))
