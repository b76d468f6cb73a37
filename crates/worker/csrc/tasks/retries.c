/* Locks, queues and children: no descriptor signals that they are available. They are checked
 * again and again. Meanwhile a task of this request that holds a resource which another task
 * needs can continue. */
#define _GNU_SOURCE
#include "tasks/calls.h"
#include "insight/request_accounting.h"
#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum {
    FIRST_NS = 200000,
    LAST_NS = 20000000,
    OPERATIONS_MAX = 16 /* on semaphores, in one call */
};

/* The call as a check that does not block, and its deadline. */
typedef struct {
    blocking_call call;
    struct sembuf operations[OPERATIONS_MAX];
    uint64_t deadline_ns;
} look;

static bool prepare_semaphores(look *l) {
    const size_t count = (size_t)l->call.argument[2];
    const struct timespec *limit = (const struct timespec *)l->call.argument[3];
    if (count > OPERATIONS_MAX) {
        return false;
    }
    memcpy(l->operations, (void *)l->call.argument[1], count * sizeof *l->operations);
    for (size_t i = 0; i < count; i++) {
        if (l->operations[i].sem_flg & IPC_NOWAIT) {
            return false; /* It does not block. */
        }
        l->operations[i].sem_flg |= IPC_NOWAIT;
    }
    l->call.argument[1] = SAMOVAR_ARGUMENT(l->operations);
    if (limit) {
        l->deadline_ns =
            samovar_now_ns() + (uint64_t)limit->tv_sec * 1000000000 + (uint64_t)limit->tv_nsec;
    }
    return true;
}

static bool prepare(look *l) {
    switch (l->call.number) {
    case SYS_flock:
        l->call.argument[1] |= LOCK_NB;
        return true;
    case SYS_semtimedop:
        return prepare_semaphores(l);
    case SYS_msgsnd:
        l->call.argument[3] |= IPC_NOWAIT;
        return true;
    case SYS_msgrcv:
        l->call.argument[4] |= IPC_NOWAIT;
        return true;
    case SYS_wait4:
        l->call.argument[2] |= WNOHANG;
        return true;
    case SYS_waitid:
        l->call.argument[3] |= WNOHANG;
        return l->call.argument[2] != 0;
    default:
        return false; /* Record locks belong to the process, and opcache has its own. */
    }
}

static bool found_nothing(const look *l, long result) {
    switch (l->call.number) {
    case SYS_wait4:
        return result == 0;
    case SYS_waitid:
        return result == 0 && ((const siginfo_t *)l->call.argument[2])->si_pid == 0;
    case SYS_msgrcv:
        return result < 0 && errno == ENOMSG;
    default:
        return result < 0 && (errno == EWOULDBLOCK || errno == EAGAIN);
    }
}

long samovar_task_retries(const blocking_call *call, task_wait *wait) {
    look l = {.call = *call};
    if (call->function || !prepare(&l)) {
        return SAMOVAR_ONLY_BLOCKS;
    }
    const bool is_one_look = (call->number == SYS_msgsnd && call->argument[3] & IPC_NOWAIT) ||
                             (call->number == SYS_msgrcv && call->argument[4] & IPC_NOWAIT);
    uint64_t pause = FIRST_NS;
    for (;;) {
        if (call->number == SYS_waitid) {
            ((siginfo_t *)call->argument[2])->si_pid = 0;
        }
        const long result = samovar_make_call(&l.call);
        if (!found_nothing(&l, result) || is_one_look) {
            return result;
        }
        const uint64_t now = samovar_now_ns();
        if (l.deadline_ns && now >= l.deadline_ns) {
            return result;
        }
        wait->deadline_ns = now + pause;
        pause = MIN(pause * 2, (uint64_t)LAST_NS);
        const task_woken woken = samovar_task_wait(wait);
        if (woken != WOKEN_LATE) {
            errno = woken == WOKEN_INTERRUPTED ? EINTR : ECANCELED;
            return -1;
        }
    }
}
