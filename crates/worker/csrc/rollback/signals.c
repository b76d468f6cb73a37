/* Pending signals: signals that a request has blocked and not handled. Only a blocked signal can
 * be pending. Once the request's handlers are gone, its default action would end the worker. */
#define _GNU_SOURCE
#include "rollback/signals.h"
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PENDING_MAX = 1024 /* dropped in one pass; signals of real time are queued */ };

/* A rollback restores the value that the boot has left. */
static bool blocked;

void samovar_signals_block(void) {
    blocked = true;
}

void samovar_signals_drop(void) {
    sigset_t all;
    sigfillset(&all);
    for (int i = 0; i < PENDING_MAX; i++) {
        if (syscall(SYS_rt_sigtimedwait, &all, NULL, &(struct timespec){0}, 8) < 0) {
            return;
        }
    }
}

void samovar_signals_end(void) {
    if (blocked) {
        samovar_signals_drop();
    }
}
