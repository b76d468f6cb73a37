/* All state that survives a rollback: one part per owner, declared in the owner's header.
 *
 * A rollback restores every private byte of a worker: the statics of C and Rust, both heaps and
 * the stack. State that must be newer than the image is kept here: hot pages, the data sent on
 * connections, the number of rollbacks. It is one MAP_SHARED mapping per worker, made after the
 * fork. A static variable that counts requests would never exceed one: such counters belong
 * here.
 *
 * Only this header may include from every folder. */
#ifndef SAMOVAR_PERSISTENT_H
#define SAMOVAR_PERSISTENT_H

#include "memory/arena.h"
#include "memory/hot.h"
#include "memory/mappings.h"
#include "loads/loads.h"
#include "outside/inherited_fds.h"
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

/* NULL until this process is a worker that rolls back, and in processes that its requests fork. */
extern persistent_state *samovar_persistent;

#endif
