/* Folder, umask, signals, timers, semaphores: records changes that a rollback undoes
 * (rollback/process.c) and, for other models, changes that are not undone (rollback/taint.c). */
#define _GNU_SOURCE
#include "interpose/blocking.h"
#include "interpose/original.h"
#include "outside/boot.h"
#include "rollback/process.h"
#include "rollback/signals.h"
#include "rollback/taint.h"
#include "rollback/time_limit.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int chdir(const char *path) {
    NOTE(samovar_process_state()->cwd_changed);
    return (int)syscall(SYS_chdir, path);
}

int fchdir(int fd) {
    NOTE(samovar_process_state()->cwd_changed);
    return (int)syscall(SYS_fchdir, fd);
}

mode_t umask(mode_t mask) {
    NOTE(samovar_process_state()->umask_changed);
    return (mode_t)syscall(SYS_umask, mask);
}

/* PHP unblocks signals in each request, which changes nothing if the boot has blocked none. */
static void note_mask(int how, const sigset_t *set) {
    const bool unblocks = how == SIG_UNBLOCK;
    if (set && !unblocks) {
        samovar_signals_block();
    }
    if (samovar_persistent) {
        samovar_process_state()->mask_changed = true;
    } else if (set) {
        samovar_taint_mask(unblocks);
    }
}

static void note_timers(void) {
    if (samovar_persistent) {
        samovar_process_state()->timers_changed = true;
    } else {
        samovar_taint_timers();
    }
    samovar_boot_opened(BOOT_TIMER);
}

int sigaction(int number, const struct sigaction *action, struct sigaction *former) {
    ORIGINAL(sigaction)
    if (action) {
        NOTE(samovar_process_state()->signals_changed);
    }
    return original(number, action, former);
}

int sigprocmask(int how, const sigset_t *set, sigset_t *former) {
    ORIGINAL(sigprocmask)
    note_mask(how, set);
    return original(how, set, former);
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *former) {
    ORIGINAL(pthread_sigmask)
    note_mask(how, set);
    return original(how, set, former);
}

__sighandler_t signal(int number, __sighandler_t handler) {
    ORIGINAL(signal)
    NOTE(samovar_process_state()->signals_changed);
    return original(number, handler);
}

unsigned alarm(unsigned seconds) {
    ORIGINAL(alarm)
    note_timers();
    return original(seconds);
}

useconds_t ualarm(useconds_t value, useconds_t interval) {
    ORIGINAL(ualarm)
    note_timers();
    return original(value, interval);
}

int setitimer(__itimer_which_t which, const struct itimerval *value, struct itimerval *former) {
    if (which != ITIMER_PROF) {
        note_timers();
    } else if (samovar_persistent) {
        /* The timer of the time limit, which PHP itself sets, too: in set_time_limit(), and
         * after a timeout. */
        samovar_time_limit_state()->known = false;
    }
    return (int)syscall(SYS_setitimer, which, value, former);
}

int timer_create(clockid_t clock, struct sigevent *event, timer_t *timer) {
    ORIGINAL(timer_create)
    if (samovar_persistent) {
        /* In other models the timer belongs to an extension, which keeps track of it. */
        samovar_persistent->leave = LEAVE_TIMER;
    }
    return original(clock, event, timer);
}

/* Each semaphore counts separately: one taken and another given back do not balance. */
static void note_semaphore(process_state *s, int set, const struct sembuf *operation) {
    uint32_t i = 0;
    while (i < s->semaphore_count &&
           (s->semaphores[i].set != set || s->semaphores[i].number != operation->sem_num)) {
        i++;
    }
    if (i == SEMAPHORES_MAX) {
        samovar_persistent->leave = LEAVE_LOCK;
        return;
    }
    if (i == s->semaphore_count) {
        s->semaphore_count++;
        s->semaphores[i].set = set;
        s->semaphores[i].number = operation->sem_num;
        s->semaphores[i].added = 0;
    }
    s->semaphores[i].added += operation->sem_op;
}

static void note_semaphores(int set, const struct sembuf *operations, size_t count) {
    for (size_t i = 0; samovar_persistent && i < count; i++) {
        note_semaphore(samovar_process_state(), set, &operations[i]);
    }
}

int semtimedop(int set, struct sembuf *operations, size_t count, const struct timespec *limit) {
    const int result =
        (int)BLOCKING(BLOCKS_QUEUE, -1, SYS_semtimedop, set, operations, count, limit, 0, 0);
    if (result == 0) {
        note_semaphores(set, operations, count);
    }
    return result;
}

int semop(int set, struct sembuf *operations, size_t count) {
    return semtimedop(set, operations, count, NULL);
}
