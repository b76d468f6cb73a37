/* The growth of a resident worker: what its memory went to, by name, while it serves. */
#ifndef SAMOVAR_CENSUS_WATCH_H
#define SAMOVAR_CENSUS_WATCH_H

#include "census/roots.h"

/* Serving begins, in a process that does not roll back. */
void samovar_watch_begin(void);
void samovar_watch_end(void);
/* Behind each request: one comparison, unless memory has grown. */
void samovar_watch_request(const census_waiting *waiting);
/* Before each look for a request: true when there was none for a second and a census is wanted.
 * Only looks: it is called from Rust. */
bool samovar_watch_is_due(void);
/* samovar_take() has come back without a request, for samovar_watch_is_due() only: takes it. */
void samovar_watch_idle(const census_waiting *waiting);

#endif
