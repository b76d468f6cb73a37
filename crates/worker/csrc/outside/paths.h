/* PHP's cache of resolved paths: where links led at the boot, and whether they still do. */
#ifndef SAMOVAR_OUTSIDE_PATHS_H
#define SAMOVAR_OUTSIDE_PATHS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { MOVED_MAX = 256 }; /* paths that are resolved anew by each request */

typedef struct {
    time_t looked_at;
    uint64_t moved[MOVED_MAX]; /* keys of paths that lead elsewhere by now */
    uint32_t moved_count;
} paths_state;

/* Before the image. `keep`: entries do not expire in it. */
void samovar_paths_settle(bool keep);
/* After a request: looks whether the image's paths lead where they did, now and then. */
void samovar_paths_look(paths_state *s);
/* Before a request: forgets those that do not. */
void samovar_paths_forget(const paths_state *s);

#endif
