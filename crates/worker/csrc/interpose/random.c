/* random, rand, drand48 and their like: libc's generators are seeded when a request first uses them
 * (rollback/reseed.c), not after each rollback. One that a request seeds by itself keeps its seed.
 *
 * A generator with a state of the caller's own (random_r, erand48) is the caller's. */
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

/* Seeded first, for what it does not set, and because it may answer with the former state. */
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
