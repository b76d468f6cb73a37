/* The point to which a worker returns after each request, and the rollback itself.
 *
 * This folder orders the steps of memory/ and outside/, and adds the other state that the kernel
 * keeps of the process. It includes from both, and from nothing above. */
#ifndef SAMOVAR_ROLLBACK_ROLLBACK_H
#define SAMOVAR_ROLLBACK_ROLLBACK_H

#include "memory/persistent.h"
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

typedef struct {
    ucontext_t resume, restore;
    char *stack_low;
    char *stack_copy;
    size_t stack_len, stack_room;
    uint64_t count, last_ns; /* rollbacks, and the duration of the last one */
    bool unclean;            /* the request ended in a fatal error */
} rollback_state;

PERSISTENT_STATE(rollback_state, samovar_rollback_state, rollback);

/* Makes this the point to which each rollback returns. Returns false if this process cannot roll
 * back; the caller reports it. */
bool samovar_rollback_here(void);
_Noreturn void samovar_roll_back(void);
/* Called in every child of fork(): a process that a request has forked is not a worker. */
void samovar_forked(void);

#endif
