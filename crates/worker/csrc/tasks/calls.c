/* Parts of waiting calls while tasks are in flight: where code can be suspended, deadlines, waits
 * for descriptors; and the calls that only wait: poll, select, epoll, sleep. */
#define _GNU_SOURCE
#include "tasks/calls.h"
#include "compat.h"
#include "insight/request_accounting.h"
#include <zend_signal.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum {
    KERNEL_SIGSET_BYTES = 8,
    SECONDS_MAX = 10 * 366 * 24 * 3600 /* of a wait */
};

/* ---- where code can be suspended ----------------------------------------------------------- */

static bool is_loading(void) {
    return CG(in_compilation) || (EG(in_autoload) && zend_hash_num_elements(EG(in_autoload)) > 0);
}

/* A region with deferred signals is a lock of some extension (APCu). */
static bool holds_signals(void) {
#ifdef ZEND_SIGNALS
    return SIGG(depth) > 0;
#else
    return false;
#endif
}

bool samovar_task_may_leave(void) {
    return !zend_fiber_switch_blocked() && !OG(running) && !is_loading() && !holds_signals() &&
           EG(current_fiber_context);
}

/* ---- times --------------------------------------------------------------------------------- */

static uint64_t ns_of(const struct timespec *t) {
    const time_t seconds = t->tv_sec < SECONDS_MAX ? t->tv_sec : SECONDS_MAX;
    return (uint64_t)seconds * 1000000000 + (uint64_t)t->tv_nsec;
}

static struct timespec left_until(uint64_t deadline_ns) {
    const uint64_t now = samovar_now_ns();
    const uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
    return (struct timespec){.tv_sec = (time_t)(left / 1000000000),
                             .tv_nsec = (long)(left % 1000000000)};
}

uint64_t samovar_task_limit(int fd, int option) {
    struct timeval limit = {0};
    socklen_t len = sizeof limit;
    if (syscall(SYS_getsockopt, fd, SOL_SOCKET, option, &limit, &len) != 0 || !timerisset(&limit)) {
        return 0;
    }
    const struct timespec time = {limit.tv_sec, limit.tv_usec * 1000};
    return samovar_now_ns() + ns_of(&time);
}

/* ---- waiting for descriptors --------------------------------------------------------------- */

bool samovar_is_nonblocking(int fd) {
    const long flags = syscall(SYS_fcntl, fd, F_GETFL);
    return flags < 0 || flags & O_NONBLOCK;
}

static bool wait_for_all(task_wait *wait, const struct pollfd *fds, uint32_t count, int late) {
    wait->fds = fds;
    wait->count = count;
    switch (samovar_task_wait(wait)) {
    case WOKEN_READY:
        return true;
    case WOKEN_LATE:
        errno = late;
        return false;
    case WOKEN_INTERRUPTED:
        errno = EINTR;
        return false;
    default:
        errno = ECANCELED;
        return false;
    }
}

bool samovar_task_wait_for(task_wait *wait, int fd, short events, int late) {
    struct pollfd one = {.fd = fd, .events = events};
    const struct timespec now = {0};
    if (syscall(SYS_ppoll, &one, 1, &now, NULL, KERNEL_SIGSET_BYTES) != 0) {
        return true;
    }
    return wait_for_all(wait, &one, 1, late);
}

/* ---- poll, select, epoll, sleep ------------------------------------------------------------ */

long samovar_task_polls(const blocking_call *call, task_wait *wait) {
    const struct timespec *limit = (const struct timespec *)call->argument[2];
    const struct timespec now = {0};
    blocking_call look = *call;
    look.argument[2] = SAMOVAR_ARGUMENT(&now);
    wait->deadline_ns = limit ? samovar_now_ns() + ns_of(limit) : 0;
    for (;;) {
        const long found = samovar_make_call(&look);
        if (found != 0) {
            return found;
        }
        if (!wait_for_all(wait, call->what, (uint32_t)call->count, ETIMEDOUT)) {
            return errno == ETIMEDOUT ? samovar_make_call(&look) : -1;
        }
    }
}

typedef struct {
    unsigned long bits[TASK_SELECTED_MAX / (8 * sizeof(unsigned long))];
} selected;

static size_t bytes_of(size_t count) {
    const size_t bits = 8 * sizeof(unsigned long);
    return (count + bits - 1) / bits * sizeof(unsigned long);
}

static bool has(const void *set, size_t fd) {
    return set && FD_ISSET(fd, (const fd_set *)set);
}

static uint32_t list_selected(const blocking_call *call, struct pollfd *fds) {
    uint32_t n = 0;
    for (size_t fd = 0; fd < call->count; fd++) {
        const int events = (has((void *)call->argument[1], fd) ? POLLIN : 0) |
                           (has((void *)call->argument[2], fd) ? POLLOUT : 0) |
                           (has((void *)call->argument[3], fd) ? POLLPRI : 0);
        if (events) {
            fds[n++] = (struct pollfd){.fd = (int)fd, .events = (short)events};
        }
    }
    return n;
}

/* Checks copies of the sets. They are copied back to the caller's only if something was found. */
static long look_at_sets(const blocking_call *call, bool is_last) {
    selected copies[3];
    struct timespec now = {0};
    blocking_call look = *call;
    look.argument[4] = SAMOVAR_ARGUMENT(&now);
    const size_t bytes = bytes_of(call->count);
    for (int i = 0; i < 3; i++) {
        if (call->argument[i + 1]) {
            memcpy(&copies[i], (void *)call->argument[i + 1], bytes);
            look.argument[i + 1] = SAMOVAR_ARGUMENT(&copies[i]);
        }
    }
    const long found = samovar_make_call(&look);
    for (int i = 0; i < 3 && (found > 0 || (found == 0 && is_last)); i++) {
        if (call->argument[i + 1]) {
            memcpy((void *)call->argument[i + 1], &copies[i], bytes);
        }
    }
    return found;
}

long samovar_task_selects(const blocking_call *call, task_wait *wait) {
    struct timespec *limit = (struct timespec *)call->argument[4];
    struct pollfd fds[TASK_SELECTED_MAX];
    const uint32_t count = list_selected(call, fds);
    wait->deadline_ns = limit ? samovar_now_ns() + ns_of(limit) : 0;
    long found;
    while ((found = look_at_sets(call, false)) == 0) {
        if (!wait_for_all(wait, fds, count, ETIMEDOUT)) {
            found = errno == ETIMEDOUT ? look_at_sets(call, true) : -1;
            break;
        }
    }
    const int error = errno;
    if (limit) {
        *limit = left_until(wait->deadline_ns);
    }
    errno = error;
    return found;
}

long samovar_task_epolls(const blocking_call *call, task_wait *wait) {
    const long limit_ms = (int)call->argument[3];
    blocking_call look = *call;
    look.argument[3] = 0;
    const struct timespec limit = {limit_ms / 1000, limit_ms % 1000 * 1000000};
    wait->deadline_ns = limit_ms >= 0 ? samovar_now_ns() + ns_of(&limit) : 0;
    if (!samovar_task_wait_for(wait, call->fd, POLLIN, ETIMEDOUT) && errno != ETIMEDOUT) {
        return -1;
    }
    return samovar_make_call(&look);
}

static uint64_t end_of_sleep(const blocking_call *call) {
    if (call->number == SYS_nanosleep) {
        return samovar_now_ns() + ns_of((const struct timespec *)call->argument[0]);
    }
    const uint64_t time = ns_of((const struct timespec *)call->argument[2]);
    if (!(call->argument[1] & TIMER_ABSTIME)) {
        return samovar_now_ns() + time;
    }
    struct timespec now = {0};
    clock_gettime((clockid_t)call->argument[0], &now);
    const uint64_t passed = ns_of(&now);
    return samovar_now_ns() + (time > passed ? time - passed : 0);
}

long samovar_task_sleeps(const blocking_call *call, task_wait *wait) {
    const bool is_plain = call->number == SYS_nanosleep;
    struct timespec *left = (struct timespec *)call->argument[is_plain ? 1 : 3];
    wait->deadline_ns = end_of_sleep(call);
    if (!wait_for_all(wait, NULL, 0, ETIMEDOUT) && errno == ETIMEDOUT) {
        return 0;
    }
    if (left && (is_plain || !(call->argument[1] & TIMER_ABSTIME))) {
        const int error = errno;
        *left = left_until(wait->deadline_ns);
        errno = error;
    }
    return -1;
}
