/* A task that looks up a name waits for a process that makes the query on its behalf
 * (resolver.c). */
#define _GNU_SOURCE
#include "tasks/names.h"
#include "insight/request_accounting.h"
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    KERNEL_SIGNAL_SET_BYTES = 8,
    THREADS_ALONE = 3, /* links of /proc/self/task with one thread */
    OPEN_MAX = 2 * NAMES_QUESTIONS_MAX
};

/* Uses a system call, because our interposed functions record descriptors. */
static void close_own(int fd) {
    syscall(SYS_close, fd);
}

/* ---- the resolver process ------------------------------------------------------------------ */

static struct {
    pid_t pid; /* 0: there is none */
    int socket;
    uint32_t count;
    int open[OPEN_MAX]; /* of queries in flight */
} resolver;

/* Other threads (curl's own for names) may hold libc's locks, and only fork() can take these.
 * Without other threads the process is made so that wait() and SIGCHLD do not report it, because
 * it is not PHP's. */
static pid_t split(void) {
    struct stat info;
    const bool is_alone = stat("/proc/self/task", &info) == 0 && info.st_nlink <= THREADS_ALONE;
    return is_alone ? (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, 0) : fork();
}

static bool start(void) {
    int ends[2];
    if (resolver.pid) {
        return true;
    }
    if (syscall(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return false;
    }
    const pid_t self = (pid_t)syscall(SYS_getpid);
    const uint64_t all = ~0ULL;
    uint64_t before;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, KERNEL_SIGNAL_SET_BYTES);
    const pid_t pid = split();
    if (pid == 0) {
        samovar_names_serve(ends[1], self);
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, KERNEL_SIGNAL_SET_BYTES);
    close_own(ends[1]);
    if (pid < 0) {
        close_own(ends[0]);
        return false;
    }
    resolver.pid = pid;
    resolver.socket = ends[0];
    return true;
}

static void stop(void) {
    syscall(SYS_kill, resolver.pid, SIGKILL);
    while (syscall(SYS_wait4, resolver.pid, NULL, __WALL, NULL) < 0 && errno == EINTR) {
    }
    close_own(resolver.socket);
    resolver.pid = 0;
}

static void forget_questions(void) {
    while (resolver.count > 0) {
        close_own(resolver.open[--resolver.count]);
    }
}

void samovar_names_end(bool at_once) {
    if (!resolver.pid || (!at_once && (resolver.count > 0 || samovar_tasks_in_flight()))) {
        return;
    }
    const int error = errno;
    forget_questions(); /* Of code that was left in the middle of a query. */
    stop();
    errno = error;
}

void samovar_names_forked(void) {
    if (resolver.pid) {
        forget_questions();
        close_own(resolver.socket);
        resolver.pid = 0;
    }
}

static void forget(int fd) {
    for (uint32_t i = 0; i < resolver.count; i++) {
        if (resolver.open[i] == fd) {
            resolver.open[i] = resolver.open[--resolver.count];
            close_own(fd);
            return;
        }
    }
}

static long pass(const names_question *q, int to) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)),
                          .cmsg_level = SOL_SOCKET,
                          .cmsg_type = SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.head), &to, sizeof to);
    const size_t len =
        offsetof(names_question, text) + q->host_len + q->service_len + q->address_len;
    struct iovec part = {(void *)q, len};
    const struct msghdr message = {.msg_iov = &part,
                                   .msg_iovlen = 1,
                                   .msg_control = &control,
                                   .msg_controllen = sizeof control};
    return syscall(SYS_sendmsg, resolver.socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- waiting ------------------------------------------------------------------------------- */

typedef enum { RECEIVED, CANCELLED, LOST } reception;

/* libc's own functions continue after a signal, and so do we, unless the request must end. */
static bool waits_on(void) {
    return errno == EINTR && !EG(exception) && !zend_atomic_bool_load_ex(&EG(timed_out));
}

static reception receive(int fd, task_wait *wait, void *to, size_t len) {
    for (size_t got = 0; got < len;) {
        const long n =
            syscall(SYS_recvfrom, fd, (char *)to + got, len - got, MSG_DONTWAIT, NULL, 0);
        if (n > 0) {
            got += (size_t)n;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            return LOST;
        } else if (!samovar_task_wait_for(wait, fd, POLLIN, EINTR) && !waits_on()) {
            return CANCELLED;
        }
    }
    return RECEIVED;
}

/* Opens the two ends for the response: one to read it, one to pass on. */
static bool open_question(int ends[2]) {
    if (resolver.count + 2 > OPEN_MAX || !start() ||
        syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return false;
    }
    resolver.open[resolver.count++] = ends[0];
    resolver.open[resolver.count++] = ends[1];
    return true;
}

/* The process may not have taken the earlier queries yet. */
static reception send_question(const names_question *q, int to, task_wait *wait) {
    reception how = RECEIVED;
    while (how == RECEIVED && pass(q, to) < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            how = LOST;
        } else if (!samovar_task_wait_for(wait, resolver.socket, POLLOUT, EINTR) && !waits_on()) {
            how = CANCELLED;
        }
    }
    return how;
}

static reception hear(int fd, task_wait *wait, names_answer *head, char **bytes) {
    const reception first = receive(fd, wait, head, sizeof *head);
    if (first != RECEIVED) {
        return first;
    }
    *bytes = head->bytes <= NAMES_ANSWER_MAX ? malloc((size_t)head->bytes + 1) : NULL;
    return *bytes ? receive(fd, wait, *bytes, head->bytes) : LOST;
}

static reception talk(const names_question *q, int ends[2], task_wait *wait, names_answer *head,
                      char **bytes) {
    const reception sent = send_question(q, ends[1], wait);
    forget(ends[1]); /* the response ends when the resolver closes its copy */
    return sent == RECEIVED ? hear(ends[0], wait, head, bytes) : sent;
}

long samovar_task_names(const blocking_call *call, task_wait *wait) {
    names_question q = {.function = NAMES_GETADDRINFO};
    int ends[2];
    if (!samovar_names_put(&q, call) || !open_question(ends)) {
        return SAMOVAR_ONLY_BLOCKS;
    }
    names_answer head;
    char *bytes = NULL;
    long result = SAMOVAR_ONLY_BLOCKS; /* without a response, libc itself */
    const reception how = talk(&q, ends, wait, &head, &bytes);
    if (how == RECEIVED) {
        result = samovar_names_give(call, &q, &head, bytes);
    } else if (how == CANCELLED) {
        result = samovar_names_give_up(call);
    }
    const int error = errno;
    free(bytes);
    forget(ends[0]);
    samovar_names_end(how == LOST && resolver.count == 0);
    errno = error;
    return result;
}
