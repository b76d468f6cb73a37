/* The worker's own part of the image: what differs from it when the worker begins. */
#ifndef SAMOVAR_MEMORY_OWN_H
#define SAMOVAR_MEMORY_OWN_H

#include "memory/search.h"

typedef struct {
    search_state *search;
    const char **sources; /* by page of the image: where its content is */
    const char *baseline; /* what was taken, read-only */
    long faults;          /* of this thread until then */
} own_part;

/* Page faults of this thread so far: a page cannot be written for the first time without one. */
long samovar_faults(void);
/* Takes it, last of all starts: what is written from here on, a fault will show. */
bool samovar_own_take(own_part *part);

#endif
