/* What the kernel knows of the process beside its memory and its descriptors: folder, umask,
 * signals, timers, children, semaphores. */
#ifndef SAMOVAR_ROLLBACK_PROCESS_H
#define SAMOVAR_ROLLBACK_PROCESS_H

#include "leave.h"
#include <stdint.h>
#include <sys/types.h>

enum { SEMAPHORES_MAX = 32 }; /* used by one request */

typedef struct {
    int cwd;
    mode_t umask;
    bool has_children; /* of the boot: no request can be told by its own */
    /* What the interposed functions of libc have seen since the last rollback. */
    volatile bool cwd_changed, umask_changed, signals_changed, timers_changed, mask_changed;
    bool modules_end; /* PHP's extensions end the request; what they free comes back. */
    struct {
        int set, number, added;   /* what the request has added to it, in all */
    } semaphores[SEMAPHORES_MAX]; /* of System V */
    uint32_t semaphore_count;
} process_state;

/* When a worker begins: what all of it is. False: the folder cannot be opened. */
bool samovar_process_begin(process_state *s);
/* What was noted so far was the worker's own start. */
void samovar_process_settle(process_state *s);
/* After a request, before anything is put back: what cannot be; LEAVE_NOT: nothing.
 * `threads_started`: it may have left some. */
leave_reason samovar_process_doubt(const process_state *s, bool threads_started);
/* All of it as it was. Leaves when that is not possible. */
void samovar_process_restore(process_state *s);

#endif
