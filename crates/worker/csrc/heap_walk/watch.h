/* Names the causes of a resident worker's memory growth in the log, while it serves. */
#ifndef SAMOVAR_HEAP_WALK_WATCH_H
#define SAMOVAR_HEAP_WALK_WATCH_H

#include "heap_walk/roots.h"

/* Called when serving begins, in a process that does not roll back. */
void samovar_watch_begin(void);
void samovar_watch_end(void);
/* Called after each request. One comparison, unless memory has grown. */
void samovar_watch_request(const heap_walk_waiting *waiting);
/* Called before each check for a request. Returns true if there was none for a second and a heap
 * walk is due. It only reads state, because it is called from Rust. */
bool samovar_watch_is_due(void);
/* Called when samovar_take() has returned without a request because of samovar_watch_is_due().
 * Walks the heap. */
void samovar_watch_idle(const heap_walk_waiting *waiting);

#endif
