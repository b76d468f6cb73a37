/* The way back of the descriptors that a worker keeps, after each request. */
#ifndef SAMOVAR_OUTSIDE_PUT_BACK_H
#define SAMOVAR_OUTSIDE_PUT_BACK_H

#include "outside/kept.h"

/* When all that the worker keeps open is open: fills the free numbers below with copies of
 * `filler`, so that all that a request opens lies above. False: it cannot tell its own. */
bool samovar_put_back_begin(kept_state *s, int filler);
/* What closes a descriptor within libc is not seen; false: one is gone, or another file by now. */
bool samovar_put_back_are_known(const kept_state *s);
/* Whether a request can be taken: false when a connection has died, or has more to say. Drops
 * datagrams that nobody has waited for. */
bool samovar_put_back_are_quiet(const kept_state *s);
/* Closes what the request has opened; flags, positions and locks of the others as they were. Leaves
 * when that is not possible. */
void samovar_put_back(const kept_state *s);

#endif
