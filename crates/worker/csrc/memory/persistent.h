/* Memory of a worker that survives a rollback, with room for the state of each unit.
 *
 * A rollback restores every private byte of a worker: the statics of C and Rust, both heaps and
 * the stack. State that must be newer than the image is kept here: hot pages, the data sent on
 * connections, the number of rollbacks. It is one MAP_SHARED mapping per worker, made after the
 * fork. A static variable that counts requests would never exceed one: such counters belong
 * here.
 *
 * This header knows the size of each state and not its type, so no unit depends on another
 * one's. A unit declares its state in its own header, together with a function that returns it:
 *
 *     PERSISTENT_STATE(hot_state, samovar_hot_state, hot);
 *
 * The rooms are at fixed offsets. So the function costs one load, that of samovar_persistent. */
#ifndef SAMOVAR_MEMORY_PERSISTENT_H
#define SAMOVAR_MEMORY_PERSISTENT_H

#include "leave.h"
#include <stdbool.h>

#define PERSISTENT_ROOM _Alignas(64) char

typedef struct {
    /* Why this worker leaves after the request; LEAVE_NOT: it stays. Set by any unit. */
    volatile leave_reason leave;
    PERSISTENT_ROOM time_limit[32];
    PERSISTENT_ROOM loads[32];
    PERSISTENT_ROOM process[512];
    PERSISTENT_ROOM descendants[32];
    PERSISTENT_ROOM arena[640];
    PERSISTENT_ROOM rollback[10 << 10]; /* two contexts, which are largest on aarch64 */
    PERSISTENT_ROOM hot[3584];
    PERSISTENT_ROOM kept[6656];
    PERSISTENT_ROOM paths[2304];
    PERSISTENT_ROOM reseed[4352];
    PERSISTENT_ROOM mappings[74 << 10];
} persistent_memory;

/* NULL until this process is a worker that rolls back, and in processes that its requests fork. */
extern persistent_memory *samovar_persistent;

/* Defines `function`, which returns the state in that room. Call it only while samovar_persistent
 * is not NULL. */
#define PERSISTENT_STATE(type, function, room)                                                     \
    static inline type *function(void) {                                                           \
        return (type *)samovar_persistent->room;                                                   \
    }                                                                                              \
    _Static_assert(sizeof(type) <= sizeof samovar_persistent->room &&                              \
                       _Alignof(type) <= _Alignof(persistent_memory),                              \
                   "the state does not fit its room in memory/persistent.h")

/* Called before the worker's own part of the image is taken, so that a rollback keeps the
 * pointer. All states are zero. Returns false if there is no memory. */
bool samovar_persistent_begin(void);
/* From here on this process is not a worker that rolls back. */
void samovar_persistent_end(void);

#endif
