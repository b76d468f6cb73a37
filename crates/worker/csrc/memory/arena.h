/* What the Zend heap maps beyond the image, from memory that is kept for the next request. */
#ifndef SAMOVAR_MEMORY_ARENA_H
#define SAMOVAR_MEMORY_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ARENA_UNITS = 64,  /* of 2 MiB */
    ARENA_HISTORY = 16 /* rollbacks */
};

/* The Zend heap's large memory, in units of SAMOVAR_CHUNK_BYTES. */
typedef struct {
    char *at;                    /* NULL: none */
    uint64_t used;               /* a bit per unit */
    size_t lengths[ARENA_UNITS]; /* of the block that begins there, in bytes; else 0 */
    uint32_t peak;               /* units that this request has needed */
    uint32_t filled;             /* units that may hold memory */
    uint8_t peaks[ARENA_HISTORY];
    uint32_t turn;
    int64_t idle_since; /* seconds; 0: not idle */
} arena_state;

/* When PHP has started: where in its code the heap calls mmap(). */
void samovar_arena_learn(void);
/* In mmap(): a caller that samovar_arena_learn() waits for is one of the Zend heap's. */
void samovar_arena_called_from(const void *caller);
bool samovar_arena_is_caller(const void *caller);

void samovar_arena_start(arena_state *a);
/* NULL: there is no room, or none at `at`. */
void *samovar_arena_take(arena_state *a, char *at, size_t len);
/* False: [at, at + len) is no part of it. */
bool samovar_arena_give_back(arena_state *a, char *at, size_t len);
bool samovar_arena_has(const arena_state *a, const char *at);
/* Makes a block of it, [at, at + len), longer or shorter where it lies. False: there is no room. */
bool samovar_arena_resize(arena_state *a, char *at, size_t len, size_t new_len);
/* False: the kernel has kept what was to be given back to it. */
bool samovar_arena_restore(arena_state *a);
/* While a worker waits: after a second it keeps less. */
void samovar_arena_idle(arena_state *a);

#endif
