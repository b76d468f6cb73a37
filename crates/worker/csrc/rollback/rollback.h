/* The point that a worker returns to after each request, and the way back.
 *
 * This folder orders what memory/ and outside/ put back, and adds what else the kernel knows of the
 * process. It includes from both, and from nothing above. */
#ifndef SAMOVAR_ROLLBACK_ROLLBACK_H
#define SAMOVAR_ROLLBACK_ROLLBACK_H

#include "leave.h"
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

typedef struct {
    ucontext_t resume, restore;
    char *stack_low;
    char *stack_copy;
    size_t stack_len, stack_room;
    uint64_t count, last_ns; /* rollbacks, and what the last one has taken */
    bool unclean;            /* the request ended in a fatal error */
    volatile leave_reason leave;
} rollback_state;

/* Becomes the point that each rollback returns to; false: this process cannot roll back (said). */
bool samovar_rollback_here(void);
_Noreturn void samovar_roll_back(void);
/* In every child of fork(): that a request has forked is no worker. */
void samovar_forked(void);

#endif
