/* State that the kernel keeps of the process, apart from its memory and its descriptors: folder,
 * umask, signals, timers, children, semaphores. */
#ifndef SAMOVAR_ROLLBACK_PROCESS_H
#define SAMOVAR_ROLLBACK_PROCESS_H

#include "leave.h"
#include "memory/persistent.h"
#include <stdint.h>
#include <sys/types.h>

enum { SEMAPHORES_MAX = 32 }; /* used by one request */

typedef struct {
    int cwd;
    mode_t umask;
    bool has_children; /* of the boot: a request's cannot be distinguished */
    /* Changes that the interposed functions of libc have recorded since the last rollback. */
    volatile bool cwd_changed, umask_changed, signals_changed, timers_changed, mask_changed;
    bool modules_end; /* PHP's extensions end the request; memory they free is restored */
    struct {
        int set, number, added;   /* sum of the request's changes to it */
    } semaphores[SEMAPHORES_MAX]; /* of System V */
    uint32_t semaphore_count;
} process_state;

PERSISTENT_STATE(process_state, samovar_process_state, process);

/* Called when a worker begins: records all of it. Returns false if the folder cannot be opened. */
bool samovar_process_begin(process_state *s);
/* Discards the records so far, which are those of the worker's own start. */
void samovar_process_settle(process_state *s);
/* Called when the request's code has ended, before its signal handlers are gone: an alarm would
 * end the process. */
void samovar_process_end_timers(const process_state *s);
/* Called after a request, before anything is restored. Returns the reason if something cannot be
 * restored, else LEAVE_NOT. `threads_started`: the request may have left threads. */
leave_reason samovar_process_doubt(const process_state *s, bool threads_started);
/* Restores all of it. Leaves if that is not possible. */
void samovar_process_restore(process_state *s);

#endif
