/* Processes that a request has started, and that run beyond its end: a daemon that was forked
 * twice, a program in the background. None of them may use a connection or a file of the boot
 * while the worker serves the next request.
 *
 * Programs lose these descriptors, which are closed on exec (inherited_fds.c). A process that
 * was forked and runs no new program keeps them. It keeps both ends of a pipe as well, which is
 * opened before the first fork of a request and closed on exec, too. After the request the
 * worker closes its own writing end. While the other end has not ended, a process still holds
 * the descriptors of the boot, however often it has forked: the worker leaves.
 *
 * A copy of a descriptor stays open when a program is executed. A request that has copied a
 * descriptor of the boot and started a process ends its worker.
 *
 * A subreaper would not serve: programs in the background would become children of the worker,
 * and pcntl_wait() of later requests would find them.
 *
 * A request that starts no process costs no system call. */
#define _GNU_SOURCE
#include "outside/descendants.h"
#include "outside/connection_protocols.h"
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A process that was just forked may be about to execute its program. */
enum { EXEC_WAIT_MS = 20 };

/* In a process that a request has forked: the state of its worker. */
static descendants_state *parents;
static const kept_state *parents_kept;

static bool is_boots(int fd) {
    const kept_state *kept = samovar_persistent ? samovar_kept_state() : parents_kept;
    for (uint32_t i = 0; kept && i < kept->count; i++) {
        if (kept->list[i].fd == fd) {
            return true;
        }
    }
    return false;
}

static descendants_state *state(void) {
    return samovar_persistent ? samovar_descendants_state() : parents;
}

/* ---- records ------------------------------------------------------------------------------- */

static bool open_pipe(descendants_state *s) {
    struct stat info;
    if (syscall(SYS_pipe2, s->pipe, O_CLOEXEC) != 0) {
        return false;
    }
    s->has_pipe = true;
    s->inode = fstat(s->pipe[0], &info) == 0 ? info.st_ino : 0;
    return true;
}

void samovar_descendants_fork(void) {
    if (!samovar_persistent) {
        return;
    }
    descendants_state *s = samovar_descendants_state();
    s->started = true;
    if (samovar_kept_state()->count > 0 && !s->has_pipe && !open_pipe(s)) {
        s->unknown = true;
    }
}

void samovar_descendants_forked(void) {
    if (samovar_persistent) {
        parents = samovar_descendants_state();
        parents_kept = samovar_kept_state();
    }
}

void samovar_descendants_spawn(void) {
    if (samovar_persistent) {
        samovar_descendants_state()->started = true;
    }
}

void samovar_descendants_share(int fd) {
    if (is_boots(fd)) {
        state()->shared = true;
    }
}

void samovar_descendants_sent(const struct msghdr *message) {
    if (!state() || !message->msg_control) {
        return;
    }
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part;
         part = CMSG_NXTHDR((struct msghdr *)message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        for (size_t at = CMSG_LEN(0); at + sizeof(int) <= part->cmsg_len; at += sizeof(int)) {
            int fd;
            memcpy(&fd, (const char *)part + at, sizeof fd);
            if (is_boots(fd)) {
                samovar_talk_other(fd);
                state()->shared = state()->started = true;
            }
        }
    }
}

/* ---- the end of a request ------------------------------------------------------------------ */

static bool is_pipe(const descendants_state *s, int fd) {
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode) && info.st_ino == s->inode;
}

/* The request may have closed the pipe, which then shows nothing. */
static bool is_held(const descendants_state *s) {
    if (!is_pipe(s, s->pipe[0]) || !is_pipe(s, s->pipe[1])) {
        return true;
    }
    syscall(SYS_close, s->pipe[1]);
    struct pollfd p = {.fd = s->pipe[0]};
    const struct timespec limit = {.tv_nsec = EXEC_WAIT_MS * 1000000L};
    return syscall(SYS_ppoll, &p, 1, &limit, NULL, 0) != 1 || !(p.revents & POLLHUP);
}

bool samovar_descendants_remain(void) {
    descendants_state *s = samovar_descendants_state();
    if (!s->started) {
        s->shared = false;
        return false;
    }
    const bool remain = s->unknown || s->shared || (s->has_pipe && is_held(s));
    *s = (descendants_state){0}; /* The rollback closes the reading end. */
    return remain;
}

void samovar_descendants_hang_up(const kept_state *kept) {
    for (uint32_t i = 0; i < kept->count; i++) {
        const kept_descriptor *k = &kept->list[i];
        if (k->talk && (k->talk->language == TALK_MYSQL || k->talk->language == TALK_PGSQL)) {
            syscall(SYS_shutdown, k->fd, SHUT_RDWR);
        }
    }
}
