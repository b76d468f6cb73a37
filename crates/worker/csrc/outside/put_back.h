/* Restores the descriptors that a worker keeps, after each request. */
#ifndef SAMOVAR_OUTSIDE_PUT_BACK_H
#define SAMOVAR_OUTSIDE_PUT_BACK_H

#include "outside/inherited_fds.h"

/* Called when all descriptors that the worker keeps are open: fills the free numbers below with
 * copies of `filler`, so that all descriptors of a request are above. Returns false if the
 * worker cannot identify its own descriptors. */
bool samovar_put_back_begin(kept_state *s, int filler);
/* Returns false if a descriptor is gone, or is another file now: a close inside libc is not
 * seen. */
bool samovar_put_back_are_known(const kept_state *s);
/* Returns true if a request can be taken, false if a connection has died or has unread data.
 * Drops datagrams that no request has waited for. */
bool samovar_put_back_are_quiet(const kept_state *s);
/* Closes the descriptors that the request has opened. Restores flags, positions and locks of the
 * others. Leaves if that is not possible. */
void samovar_put_back(const kept_state *s);

#endif
