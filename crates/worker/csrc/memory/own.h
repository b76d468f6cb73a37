/* The worker's own part of the image: pages that differ from it when the worker begins. */
#ifndef SAMOVAR_MEMORY_OWN_H
#define SAMOVAR_MEMORY_OWN_H

#include "memory/search.h"

typedef struct {
    search_state *search;
    const char **sources; /* by page of the image: address of its content */
    const char *baseline; /* content of the own part, read-only */
    long faults;          /* of this thread until then */
} own_part;

/* Returns the page faults of this thread so far. A page cannot be written for the first time
 * without one. */
long samovar_faults(void);
/* Takes the own part. It must be the last step of the start, because writes from here on are
 * detected by their faults. */
bool samovar_own_take(own_part *part);

#endif
