/* Bytes and connections: waits for room or bytes first, then transfers as much as is possible at
 * once. */
#define _GNU_SOURCE
#include "tasks/calls.h"
#include "insight/request_accounting.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    UNIX_RETRY_NS = 1000000, /* a full backlog gives no event, only EAGAIN */
    /* Maximum time for which a non-blocking connect waits for room in a backlog. Jobs that
     * connect at the same moment fill a backlog that a request alone never would. */
    BACKLOG_WAIT_NS_MAX = 2000000000,
};

/* ---- input --------------------------------------------------------------------------------- */

/* Returns true if the call has a flag that makes it return EAGAIN instead of waiting. */
static bool says_again(const blocking_call *call) {
    switch (call->number) {
    case SYS_recvfrom:
    case SYS_sendto:
    case SYS_recvmmsg:
    case SYS_sendmmsg:
        return call->argument[3] & MSG_DONTWAIT;
    case SYS_recvmsg:
    case SYS_sendmsg:
        return call->argument[2] & MSG_DONTWAIT;
    default:
        return false;
    }
}

long samovar_task_reads(const blocking_call *call, task_wait *wait) {
    if (says_again(call) || samovar_is_nonblocking(call->fd)) {
        return samovar_make_call(call);
    }
    wait->deadline_ns = samovar_task_limit(call->fd, SO_RCVTIMEO);
    if (!samovar_task_wait_for(wait, call->fd, POLLIN, EAGAIN)) {
        return -1;
    }
    return samovar_make_call(call);
}

/* ---- output -------------------------------------------------------------------------------- */

static bool is_socket(int fd) {
    int type;
    socklen_t len = sizeof type;
    return syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0;
}

static bool is_pipe(int fd) {
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode);
}

/* Like a blocking socket: sends all of it, or as much as was sent before it failed. */
static long send_all(const blocking_call *call, task_wait *wait) {
    const char *from = (const char *)call->argument[1];
    const size_t len = (size_t)call->argument[2];
    blocking_call some = *call;
    some.number = SYS_sendto;
    if (call->number == SYS_write) {
        some.argument[3] = some.argument[4] = some.argument[5] = 0;
    }
    some.argument[3] |= MSG_DONTWAIT;
    size_t sent = 0;
    for (;;) {
        some.argument[1] = SAMOVAR_ARGUMENT(from + sent);
        some.argument[2] = SAMOVAR_ARGUMENT(len - sent);
        const long n = samovar_make_call(&some);
        sent += n > 0 ? (size_t)n : 0;
        if (n >= 0 && sent >= len) {
            return (long)sent;
        }
        const bool is_full = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
        if ((n < 0 && !is_full) ||
            (is_full && !samovar_task_wait_for(wait, call->fd, POLLOUT, EAGAIN))) {
            return sent > 0 ? (long)sent : -1;
        }
    }
}

/* A pipe that has room has room for PIPE_BUF bytes. */
static long pipe_all(const blocking_call *call, task_wait *wait) {
    const size_t len = (size_t)call->argument[2];
    blocking_call some = *call;
    size_t sent = 0;
    do {
        if (!samovar_task_wait_for(wait, call->fd, POLLOUT, EAGAIN)) {
            return sent > 0 ? (long)sent : -1;
        }
        some.argument[1] = call->argument[1] + (long)sent;
        some.argument[2] = (long)MIN(len - sent, (size_t)PIPE_BUF);
        const long n = samovar_make_call(&some);
        if (n <= 0) {
            return sent > 0 ? (long)sent : n;
        }
        sent += (size_t)n;
    } while (sent < len);
    return (long)sent;
}

/* Several parts: sends as many bytes as there is room for. All callers handle that result. */
static long send_parts(const blocking_call *call, task_wait *wait) {
    if (!samovar_task_wait_for(wait, call->fd, POLLOUT, EAGAIN)) {
        return -1;
    }
    if (!is_socket(call->fd) || call->number == SYS_sendfile || call->number == SYS_sendmmsg) {
        return samovar_make_call(call);
    }
    const struct msghdr parts = {.msg_iov = (struct iovec *)call->argument[1],
                                 .msg_iovlen = (size_t)call->argument[2]};
    const bool is_message = call->number == SYS_sendmsg;
    const struct msghdr *message = is_message ? (void *)call->argument[1] : &parts;
    const long flags = is_message ? call->argument[2] : 0;
    return syscall(SYS_sendmsg, call->fd, message, flags | MSG_DONTWAIT);
}

long samovar_task_writes(const blocking_call *call, task_wait *wait) {
    if (says_again(call) || samovar_is_nonblocking(call->fd)) {
        return samovar_make_call(call);
    }
    wait->deadline_ns = samovar_task_limit(call->fd, SO_SNDTIMEO);
    const bool is_plain = call->number == SYS_write || call->number == SYS_sendto;
    if (!is_plain) {
        return send_parts(call, wait);
    }
    if (is_socket(call->fd)) {
        return send_all(call, wait);
    }
    return is_pipe(call->fd) ? pipe_all(call, wait) : samovar_make_call(call);
}

/* ---- connect ------------------------------------------------------------------------------- */

static long connect_error(int fd) {
    int error = 0;
    socklen_t len = sizeof error;
    if (syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) {
        return -1;
    }
    if (error) {
        errno = error;
        return -1;
    }
    return 0;
}

/* Returns true if there was time left to try again. */
static bool wait_for_backlog(task_wait *wait, uint64_t limit) {
    const uint64_t again = samovar_now_ns() + UNIX_RETRY_NS;
    const bool is_last = limit && limit < again;
    wait->fds = NULL;
    wait->count = 0;
    wait->deadline_ns = is_last ? limit : again;
    const bool is_late = samovar_task_wait(wait) == WOKEN_LATE;
    wait->deadline_ns = limit;
    errno = is_late ? EAGAIN : ECANCELED;
    return is_late && !is_last;
}

/* Like connect(2) of a blocking socket: errno is EINPROGRESS if the limit is over. */
static long connect_waiting(const blocking_call *call, task_wait *wait) {
    wait->deadline_ns = samovar_task_limit(call->fd, SO_SNDTIMEO);
    const uint64_t limit = wait->deadline_ns;
    for (;;) {
        if (samovar_make_call(call) == 0) {
            return 0;
        }
        if (errno == EINPROGRESS) {
            return samovar_task_wait_for(wait, call->fd, POLLOUT, EINPROGRESS)
                       ? connect_error(call->fd)
                       : -1;
        }
        if (errno != EAGAIN || !wait_for_backlog(wait, limit)) {
            return -1;
        }
    }
}

static bool is_to_unix(const blocking_call *call) {
    const struct sockaddr *to = (const struct sockaddr *)call->argument[1];
    return call->argument[2] >= (long)sizeof to->sa_family && to->sa_family == AF_UNIX;
}

/* A unix socket has no event to wait for. EAGAIN is an error for PHP's streams (main/network.c),
 * and so for mysqlnd, although it only means that others connect at this moment. */
static long connect_at_once(const blocking_call *call, task_wait *wait) {
    const uint64_t limit = samovar_now_ns() + BACKLOG_WAIT_NS_MAX;
    for (;;) {
        const long result = samovar_make_call(call);
        if (result == 0 || errno != EAGAIN || !is_to_unix(call) || !wait_for_backlog(wait, limit)) {
            return result;
        }
    }
}

long samovar_task_connects(const blocking_call *call, task_wait *wait) {
    const long flags = syscall(SYS_fcntl, call->fd, F_GETFL);
    if (flags >= 0 && flags & O_NONBLOCK) {
        return connect_at_once(call, wait);
    }
    if (flags < 0 || syscall(SYS_fcntl, call->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
        return samovar_make_call(call);
    }
    const long result = connect_waiting(call, wait);
    const int error = errno;
    syscall(SYS_fcntl, call->fd, F_SETFL, flags);
    errno = error;
    return result;
}
