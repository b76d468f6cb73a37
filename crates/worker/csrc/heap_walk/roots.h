/* The roots of a heap walk: all names by which PHP code reaches values that outlive a request. */
#ifndef SAMOVAR_HEAP_WALK_ROOTS_H
#define SAMOVAR_HEAP_WALK_ROOTS_H

#include "heap_walk/walk.h"

/* The code that waits for requests: its handler and the frames below it. NULL: there is none. */
typedef struct {
    zval *handler;
    zend_execute_data *frames;
} heap_walk_waiting;

/* Adds the roots and follows them. */
void samovar_heap_walk_roots(heap_walk_walk *w, const heap_walk_waiting *waiting);
/* Reports the objects that no root leads to, by class. */
void samovar_heap_walk_unreached(heap_walk_walk *w);

#endif
