/* State that the kernel keeps of the process, and how it is restored after a request: working
 * directory, umask, signal dispositions, timers, children, semaphores.
 *
 * The usual request changes none of it, and costs one system call to verify that. interpose/
 * records the changes that were requested from libc's functions, and only these are undone. If a
 * change cannot be undone, the worker ends. */
#define _GNU_SOURCE
#include "rollback/process.h"
#include "rollback/signals.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SIGNALS = 65,
    CHILDREN_MAX = 1024 /* reaped in one pass */
};

static struct sigaction dispositions[SIGNALS];

static void note_signals(void) {
    for (int i = 1; i < SIGNALS; i++) {
        syscall(SYS_rt_sigaction, i, NULL, &dispositions[i], 8);
    }
}

static void restore_signals(void) {
    for (int i = 1; i < SIGNALS; i++) {
        samovar_must(i == SIGKILL || i == SIGSTOP ||
                         syscall(SYS_rt_sigaction, i, &dispositions[i], NULL, 8) == 0,
                     LEAVE_FATAL);
    }
}

static void stop_timers(void) {
    const struct itimerval off = {0};
    samovar_must(syscall(SYS_setitimer, ITIMER_REAL, &off, NULL) == 0, LEAVE_TIMER);
    samovar_must(syscall(SYS_setitimer, ITIMER_VIRTUAL, &off, NULL) == 0, LEAVE_TIMER);
}

/* Reaps children that have ended. Returns false if one has not ended, because the next request
 * would find it. */
static bool reap(const process_state *s) {
    if (s->has_children) {
        return true;
    }
    for (int i = 0; i < CHILDREN_MAX; i++) {
        int pid = waitpid(-1, NULL, WNOHANG | __WALL);
        if (pid <= 0) {
            return pid < 0;
        }
    }
    return false;
}

static bool has_other_threads(void) {
    struct stat task;
    /* ".", ".." and one entry per thread. */
    return stat("/proc/self/task", &task) != 0 || task.st_nlink > 3;
}

static bool holds_semaphore(const process_state *s) {
    for (uint32_t i = 0; i < s->semaphore_count; i++) {
        if (s->semaphores[i].added != 0) {
            return true;
        }
    }
    return false;
}

static mode_t current_umask(void) {
    mode_t mask = (mode_t)syscall(SYS_umask, 077);
    syscall(SYS_umask, mask);
    return mask;
}

bool samovar_process_begin(process_state *s) {
    s->cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    s->umask = current_umask();
    note_signals();
    siginfo_t child;
    s->has_children = waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0;
    return s->cwd >= 0;
}

void samovar_process_end_timers(const process_state *s) {
    if (s->timers_changed) {
        stop_timers();
    }
}

void samovar_process_settle(process_state *s) {
    s->cwd_changed = s->umask_changed = s->signals_changed = s->timers_changed = false;
    s->mask_changed = s->modules_end = false;
    s->semaphore_count = 0;
}

leave_reason samovar_process_doubt(const process_state *s, bool threads_started) {
    const bool reaped = reap(s);
    if (threads_started && has_other_threads()) {
        return LEAVE_THREAD;
    }
    if (holds_semaphore(s)) {
        return LEAVE_LOCK; /* The kernel undoes it when this process ends. */
    }
    return reaped ? LEAVE_NOT : LEAVE_CHILD;
}

void samovar_process_restore(process_state *s) {
    if (s->cwd_changed) {
        samovar_must(syscall(SYS_fchdir, s->cwd) == 0, LEAVE_FATAL);
    }
    if (s->umask_changed) {
        syscall(SYS_umask, s->umask);
    }
    if (s->signals_changed) {
        restore_signals();
    }
    if (s->timers_changed) {
        stop_timers();
    }
    if (s->mask_changed || s->signals_changed) {
        samovar_signals_drop();
    }
    samovar_process_settle(s);
}
