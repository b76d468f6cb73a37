/* What lives through a rollback, all of it: one part per owner, which the owner's header declares.
 *
 * A rollback brings back every private byte of a worker, C's and Rust's statics, both heaps and the
 * stack. What must know more than the image does (which pages are hot, what was said on a
 * connection, how many rollbacks there were) is here, in one MAP_SHARED mapping per worker, made
 * after the fork. A new static that counts requests counts to one: it belongs here.
 *
 * This header alone may include from every folder. */
#ifndef SAMOVAR_PERSISTENT_H
#define SAMOVAR_PERSISTENT_H

#include "memory/arena.h"
#include "memory/hot.h"
#include "memory/mappings.h"
#include "loads/loads.h"
#include "outside/kept.h"
#include "outside/paths.h"
#include "rollback/process.h"
#include "rollback/reseed.h"
#include "rollback/rollback.h"
#include "model/time_limit.h"

typedef struct {
    rollback_state rollback;
    hot_state hot;
    arena_state arena;
    mappings_state mappings;
    kept_state kept;
    process_state process;
    paths_state paths;
    reseed_state reseed;
    time_limit_state time_limit;
    loads_state loads;
} persistent_state;

/* NULL until this process is a worker that rolls back, and in what its requests fork. */
extern persistent_state *samovar_persistent;

#endif
