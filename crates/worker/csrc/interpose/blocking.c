/* The hook for blocking calls: makes the calls for the watcher (blocking.h), and lets other
 * workers run while this one waits. */
#define _GNU_SOURCE
#include "interpose/blocking.h"
#include "boundary.h"
#include <poll.h>
#include <time.h>

__thread samovar_blocking_watcher *samovar_watcher;
__thread void (*samovar_close_watcher)(int fd);
__thread uint32_t samovar_descriptor_changes;
__thread bool samovar_counts_turn;

static long make(const blocking_call *call) {
    const long *a = call->argument;
    if (call->function) {
        return call->function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
    }
    return syscall(call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- run permits --------------------------------------------------------------------------- */

static bool is_any_ready(struct pollfd *fds, size_t count) {
    const struct timespec now = {0, 0};
    return syscall(SYS_ppoll, fds, count, &now, NULL, 0) != 0;
}

static bool is_ready(int fd, short events) {
    struct pollfd one = {.fd = fd, .events = events};
    return is_any_ready(&one, 1);
}

/* Returns true if the call would have to wait, as far as that can be determined. */
static bool waits(const blocking_call *call) {
    switch (call->on) {
    case BLOCKS_READ:
    case BLOCKS_ACCEPT:
        return !is_ready(call->fd, POLLIN);
    case BLOCKS_WRITE:
        return !is_ready(call->fd, POLLOUT);
    case BLOCKS_POLL:
        /* The call itself writes to these structs, too. */
        return !is_any_ready((struct pollfd *)call->what, call->count);
    default:
        return true;
    }
}

void samovar_permit_open(void) {
    samovar_counts_turn = true;
    if (!samovar_watcher) {
        samovar_watcher = samovar_make_call;
    }
}

void samovar_permit_close(void) {
    samovar_counts_turn = false;
    if (samovar_watcher == samovar_make_call) {
        samovar_watcher = NULL;
    }
}

long samovar_make_call(const blocking_call *call) {
    /* A disk is faster than a switch to another worker. */
    if (!samovar_counts_turn || call->on == BLOCKS_DISK) {
        return make(call);
    }
    /* Calls that libc makes within the call are part of it. */
    samovar_counts_turn = false;
    if (samovar_permit_pause() && waits(call)) {
        samovar_permit_pass();
    }
    const long result = make(call);
    samovar_permit_resume(); /* Does not change errno. */
    samovar_counts_turn = true;
    return result;
}
