/* poll, select, epoll_wait and related functions: waits for one of several descriptors. Waits
 * for a datagram on a socket of the image are reported to outside/connection_protocols.c. */
#define _GNU_SOURCE
#include "interpose/blocking.h"
#include "outside/connection_protocols.h"
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>

enum { KERNEL_SIGSET_BYTES = 8 };

/* The kernel changes the time limit in place; callers of libc do not expect that. */
static int wait_for_any(struct pollfd *fds, nfds_t count, const struct timespec *limit,
                        const sigset_t *mask) {
    struct timespec left = {0};
    if (limit) {
        left = *limit;
    }
    if (limit && left.tv_sec == 0 && left.tv_nsec == 0) {
        return (int)syscall(SYS_ppoll, fds, count, &left, mask, KERNEL_SIGSET_BYTES);
    }
    return (int)BLOCKING_CALL(BLOCKS_POLL, -1, fds, count, SYS_ppoll, fds, count,
                              limit ? &left : NULL, mask, KERNEL_SIGSET_BYTES, 0);
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *limit, const sigset_t *mask) {
    samovar_talk_waits(fds, count);
    return wait_for_any(fds, count, limit, mask);
}

int poll(struct pollfd *fds, nfds_t count, int limit_ms) {
#ifdef SYS_poll
    /* Cheaper for the kernel, which has no time limit to copy in and out. */
    if (limit_ms == 0 || !samovar_watcher) {
        samovar_talk_waits(fds, count);
        return (int)samovar_system_call(SYS_poll, (long)fds, (long)count, limit_ms, 0, 0, 0);
    }
#endif
    const struct timespec limit = {.tv_sec = limit_ms / 1000,
                                   .tv_nsec = (long)(limit_ms % 1000) * 1000000};
    return ppoll(fds, count, limit_ms < 0 ? NULL : &limit, NULL);
}

/* With _FORTIFY_SOURCE the compiler calls these instead; libc's versions would not call ours. */
int __poll_chk(struct pollfd *fds, nfds_t count, int limit_ms, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *limit,
                const sigset_t *mask, size_t size);

int __poll_chk(struct pollfd *fds, nfds_t count, int limit_ms, size_t size) {
    if (count * sizeof *fds > size) {
        abort();
    }
    return poll(fds, count, limit_ms);
}

int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *limit,
                const sigset_t *mask, size_t size) {
    if (count * sizeof *fds > size) {
        abort();
    }
    return ppoll(fds, count, limit, mask);
}

/* A mask in the form that the kernel expects: a pointer, then its size. */
typedef struct {
    const sigset_t *mask;
    size_t bytes;
} mask_with_size;

static int wait_in_sets(int count, fd_set *reads, fd_set *writes, fd_set *others,
                        struct timespec *left, const sigset_t *mask) {
    samovar_talk_selects(count, reads);
    mask_with_size masked = {mask, KERNEL_SIGSET_BYTES};
    if (left && left->tv_sec == 0 && left->tv_nsec == 0) {
        return (int)syscall(SYS_pselect6, count, reads, writes, others, left, &masked);
    }
    return (int)BLOCKING_CALL(BLOCKS_SELECT, -1, NULL, (size_t)(count > 0 ? count : 0),
                              SYS_pselect6, count, reads, writes, others, left, &masked);
}

int pselect(int count, fd_set *reads, fd_set *writes, fd_set *others, const struct timespec *limit,
            const sigset_t *mask) {
    struct timespec left = {0};
    if (limit) {
        left = *limit;
    }
    return wait_in_sets(count, reads, writes, others, limit ? &left : NULL, mask);
}

int select(int count, fd_set *reads, fd_set *writes, fd_set *others, struct timeval *limit) {
    struct timespec left = {0};
    if (limit) {
        left = (struct timespec){.tv_sec = limit->tv_sec + limit->tv_usec / 1000000,
                                 .tv_nsec = limit->tv_usec % 1000000 * 1000};
    }
    const int n = wait_in_sets(count, reads, writes, others, limit ? &left : NULL, NULL);
    if (limit) {
        *limit = (struct timeval){.tv_sec = left.tv_sec, .tv_usec = left.tv_nsec / 1000};
    }
    return n;
}

int epoll_pwait(int fd, struct epoll_event *events, int room, int limit_ms, const sigset_t *mask) {
    if (limit_ms == 0) {
        return (int)syscall(SYS_epoll_pwait, fd, events, room, 0, mask, KERNEL_SIGSET_BYTES);
    }
    return (int)BLOCKING(BLOCKS_EPOLL, fd, SYS_epoll_pwait, fd, events, room, limit_ms, mask,
                         KERNEL_SIGSET_BYTES);
}

int epoll_wait(int fd, struct epoll_event *events, int room, int limit_ms) {
    return epoll_pwait(fd, events, room, limit_ms, NULL);
}
