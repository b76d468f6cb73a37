/* PHP's cache of resolved paths: their targets at the boot, and whether these are still the
 * same. */
#ifndef SAMOVAR_OUTSIDE_PATHS_H
#define SAMOVAR_OUTSIDE_PATHS_H

#include "memory/persistent.h"
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { MOVED_MAX = 256 }; /* paths that each request resolves again */

typedef struct {
    time_t looked_at;
    uint64_t moved[MOVED_MAX]; /* keys of paths with another target now */
    uint32_t moved_count;
} paths_state;

PERSISTENT_STATE(paths_state, samovar_paths_state, paths);

/* Called before the image is taken. `keep`: entries do not expire in it. */
void samovar_paths_settle(bool keep);
/* Called after a request: checks from time to time whether the image's paths have the same
 * targets. */
void samovar_paths_look(paths_state *s);
/* Called before a request: removes the paths that do not. */
void samovar_paths_forget(const paths_state *s);

#endif
