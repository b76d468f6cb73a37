/* Memory that the Zend heap maps beyond the image, from an area that is kept for the next
 * request. */
#ifndef SAMOVAR_MEMORY_ARENA_H
#define SAMOVAR_MEMORY_ARENA_H

#include "memory/persistent.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ARENA_UNITS = 64,  /* of 2 MiB each */
    ARENA_HISTORY = 16 /* in rollbacks */
};

/* The Zend heap's large memory, in units of SAMOVAR_CHUNK_BYTES. */
typedef struct {
    char *at;                    /* NULL: none */
    uint64_t used;               /* one bit per unit */
    size_t lengths[ARENA_UNITS]; /* of the block that begins there, in bytes; else 0 */
    uint32_t peak;               /* units that this request has needed */
    uint32_t filled;             /* units that may hold memory */
    uint8_t peaks[ARENA_HISTORY];
    uint32_t turn;
    int64_t idle_since; /* seconds; 0: not idle */
} arena_state;

PERSISTENT_STATE(arena_state, samovar_arena_state, arena);

/* Called when PHP has started: learns where in its code the heap calls mmap(). */
void samovar_arena_learn(void);
/* Called in mmap(). While samovar_arena_learn() runs, the caller is the Zend heap. */
void samovar_arena_called_from(const void *caller);
bool samovar_arena_is_caller(const void *caller);

void samovar_arena_start(arena_state *a);
/* Returns NULL if there is no room, or none at `at`. */
void *samovar_arena_take(arena_state *a, char *at, size_t len);
/* Returns false if [at, at + len) is not part of the area. */
bool samovar_arena_give_back(arena_state *a, char *at, size_t len);
bool samovar_arena_has(const arena_state *a, const char *at);
/* Grows or shrinks a block of the area, [at, at + len), in place. Returns false if there is no
 * room. */
bool samovar_arena_resize(arena_state *a, char *at, size_t len, size_t new_len);
/* Returns false if the kernel has kept memory that was to be given back. */
bool samovar_arena_restore(arena_state *a);
/* Called while a worker waits: after a second it keeps less. */
void samovar_arena_idle(arena_state *a);

#endif
