/* What a request has changed of a process that does not roll back, and that neither PHP nor a
 * kernel's rule puts back at its end: user, root, limits, priority, timers, blocked signals. The
 * next request must not find it: the worker answers, and makes room for a fresh one.
 *
 * interpose/ tells of each change. What can be compared is: a library that blocks a signal and
 * unblocks it again has changed nothing. A request that changes nothing pays nothing.
 *
 * Signal handlers are left alone: what PHP has set for a script means what it meant before when the
 * next request begins (zend_signal.c), and any other is a library's own.
 *
 * (In a worker that rolls back, process.c sees to all that.) */
#define _GNU_SOURCE
#include "rollback/stain.h"
#include "boundary.h"
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum { SIGSET_BYTES = 8 };

static struct {
    volatile leave_reason reason;
    volatile bool timers, mask;
} stains;

/* Before the first request touched it. */
static struct {
    uint64_t mask;
    bool mask_known;
} original;

void samovar_stain(leave_reason reason) {
    stains.reason = reason;
}

void samovar_stain_timers(void) {
    stains.timers = true;
}

void samovar_stain_mask(void) {
    if (syscall(SYS_gettid) != getpid()) {
        return; /* Each thread has its own. */
    }
    if (!original.mask_known) {
        original.mask_known =
            syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &original.mask, SIGSET_BYTES) == 0;
    }
    stains.mask = true;
}

static bool has_timer(void) {
    struct itimerval real, own;
    syscall(SYS_getitimer, ITIMER_REAL, &real);
    syscall(SYS_getitimer, ITIMER_VIRTUAL, &own);
    return timerisset(&real.it_value) || timerisset(&own.it_value);
}

static bool has_other_mask(void) {
    uint64_t now = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &now, SIGSET_BYTES);
    return now != original.mask;
}

int samovar_stained(void) {
    if (stains.reason != LEAVE_NOT) {
        return stains.reason;
    }
    if (stains.timers && has_timer()) {
        return LEAVE_TIMER;
    }
    return stains.mask && has_other_mask() ? LEAVE_SIGNAL : LEAVE_NOT;
}

void samovar_stains_begin(void) {
    stains.reason = LEAVE_NOT;
    stains.timers = stains.mask = false;
}

void samovar_stains_begin_anew(void) {
    samovar_stains_begin();
    original.mask_known = false;
}
