/* Taint: changes by a request to a process that does not roll back, which neither PHP nor a rule
 * of the kernel undoes at its end: user, root, limits, priority, timers, blocked signals. The
 * next request must not find them: the worker sends its response, and is replaced by a fresh
 * one.
 *
 * interpose/ reports each change. Changes are compared where that is possible: a library that
 * blocks a signal and unblocks it again has changed nothing. A request without changes has no
 * cost.
 *
 * Signal handlers are left alone: handlers that PHP has set for a script have their former
 * meaning when the next request begins (zend_signal.c), and all others belong to libraries.
 *
 * (In a worker that rolls back, process.c handles all of this.) */
#define _GNU_SOURCE
#include "rollback/taint.h"
#include "boundary.h"
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum { SIGSET_BYTES = 8 };

static struct {
    volatile leave_reason reason;
    volatile bool timers, mask;
} taints;

/* State before the first request changed it. */
static struct {
    uint64_t mask;
    bool mask_known;
    bool blocks; /* the boot has blocked signals: a request may unblock them */
} original;

static uint64_t current_mask(void) {
    uint64_t mask = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, SIGSET_BYTES);
    return mask;
}

void samovar_taint(leave_reason reason) {
    taints.reason = reason;
}

void samovar_taint_timers(void) {
    taints.timers = true;
}

void samovar_taint_mask(bool unblocks) {
    if ((unblocks && !original.blocks) || syscall(SYS_gettid) != getpid()) {
        return; /* each thread has its own mask */
    }
    if (!original.mask_known) {
        original.mask = current_mask();
        original.mask_known = true;
    }
    taints.mask = true;
}

static bool has_timer(void) {
    struct itimerval real, own;
    syscall(SYS_getitimer, ITIMER_REAL, &real);
    syscall(SYS_getitimer, ITIMER_VIRTUAL, &own);
    return timerisset(&real.it_value) || timerisset(&own.it_value);
}

void samovar_taint_end_timers(void) {
    const struct itimerval off = {0};
    if (taints.timers && has_timer()) {
        taints.reason = taints.reason == LEAVE_NOT ? LEAVE_TIMER : taints.reason;
        syscall(SYS_setitimer, ITIMER_REAL, &off, NULL);
        syscall(SYS_setitimer, ITIMER_VIRTUAL, &off, NULL);
    }
}

int samovar_tainted(void) {
    if (taints.reason != LEAVE_NOT) {
        return taints.reason;
    }
    if (taints.timers && has_timer()) {
        return LEAVE_TIMER;
    }
    return taints.mask && current_mask() != original.mask ? LEAVE_SIGNAL : LEAVE_NOT;
}

void samovar_taints_begin(void) {
    taints.reason = LEAVE_NOT;
    taints.timers = taints.mask = false;
}

void samovar_taints_restart(void) {
    samovar_taints_begin();
    original.mask_known = false;
    original.blocks = current_mask() != 0;
}
