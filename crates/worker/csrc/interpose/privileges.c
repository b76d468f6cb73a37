/* User, group, root, limits, priority, namespaces: changes that only a new process undoes. In
 * every model, the worker sends its response and leaves. */
#define _GNU_SOURCE
#include "interpose/original.h"
#include "outside/boot.h"
#include <errno.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/fsuid.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns true for options of prctl() that change the process, except the names that the Zend
 * heap gives its memory. */
static bool changes_process(int what) {
    const int changes[] = {
        PR_SET_PDEATHSIG, PR_SET_DUMPABLE,        PR_SET_KEEPCAPS,     PR_SET_NAME,
        PR_SET_SECCOMP,   PR_CAPBSET_DROP,        PR_SET_SECUREBITS,   PR_SET_TIMERSLACK,
        PR_SET_MM,        PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_SET_THP_DISABLE,
        PR_CAP_AMBIENT};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        if (changes[i] == what) {
            return true;
        }
    }
    return false;
}

int prctl(int what, ...) {
    va_list more;
    va_start(more, what);
    unsigned long a = va_arg(more, unsigned long), b = va_arg(more, unsigned long);
    unsigned long c = va_arg(more, unsigned long), d = va_arg(more, unsigned long);
    va_end(more);
    if (changes_process(what) && (what != PR_SET_NAME || samovar_persistent)) {
        samovar_note_irreversible(LEAVE_PRIVILEGES);
    }
    return (int)syscall(SYS_prctl, what, a, b, c, d);
}

#define IRREVERSIBLE(type, name, parameters, arguments)                                            \
    type name parameters {                                                                         \
        ORIGINAL(name)                                                                             \
        samovar_note_irreversible(LEAVE_PRIVILEGES);                                               \
        return original arguments;                                                                 \
    }

/* The same for functions that make the kernel forget that this process dies with its parent
 * (prctl(2), PR_SET_PDEATHSIG). */
#define CREDENTIALS(type, name, parameters, arguments)                                             \
    type name parameters {                                                                         \
        ORIGINAL(name)                                                                             \
        samovar_note_irreversible(LEAVE_PRIVILEGES);                                               \
        int by = 0;                                                                                \
        syscall(SYS_prctl, PR_GET_PDEATHSIG, &by);                                                 \
        const type result = original arguments;                                                    \
        if (by > 0) {                                                                              \
            const int error = errno;                                                               \
            syscall(SYS_prctl, PR_SET_PDEATHSIG, by);                                              \
            errno = error;                                                                         \
        }                                                                                          \
        return result;                                                                             \
    }

CREDENTIALS(int, setuid, (uid_t id), (id))
CREDENTIALS(int, seteuid, (uid_t id), (id))
CREDENTIALS(int, setreuid, (uid_t real, uid_t effective), (real, effective))
CREDENTIALS(int, setresuid, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved))
CREDENTIALS(int, setgid, (gid_t id), (id))
CREDENTIALS(int, setegid, (gid_t id), (id))
CREDENTIALS(int, setregid, (gid_t real, gid_t effective), (real, effective))
CREDENTIALS(int, setresgid, (gid_t real, gid_t effective, gid_t saved), (real, effective, saved))
IRREVERSIBLE(int, setpgid, (pid_t pid, pid_t group), (pid, group))
IRREVERSIBLE(pid_t, setsid, (void), ())
IRREVERSIBLE(int, setrlimit, (__rlimit_resource_t what, const struct rlimit *limit), (what, limit))
IRREVERSIBLE(int, initgroups, (const char *user, gid_t group), (user, group))
IRREVERSIBLE(int, setgroups, (size_t count, const gid_t *groups), (count, groups))
CREDENTIALS(int, setfsuid, (uid_t id), (id))
CREDENTIALS(int, setfsgid, (gid_t id), (id))
IRREVERSIBLE(int, sched_setscheduler, (pid_t pid, int policy, const struct sched_param *param),
             (pid, policy, param))
IRREVERSIBLE(int, chroot, (const char *path), (path))
CREDENTIALS(int, unshare, (int flags), (flags))
IRREVERSIBLE(int, nice, (int by), (by))
IRREVERSIBLE(int, setpriority, (__priority_which_t which, id_t who, int priority),
             (which, who, priority))
IRREVERSIBLE(int, sched_setaffinity, (pid_t pid, size_t size, const cpu_set_t *set),
             (pid, size, set))

/* Part of libcap; glibc does not declare it. */
int capset(void *header, const void *data);
CREDENTIALS(int, capset, (void *header, const void *data), (header, data))
CREDENTIALS(int, setns, (int fd, int type), (fd, type))
IRREVERSIBLE(int, personality, (unsigned long persona), (persona))
IRREVERSIBLE(int, setrlimit64, (__rlimit_resource_t what, const struct rlimit64 *limit),
             (what, limit))

int prlimit(pid_t pid, __rlimit_resource_t what, const struct rlimit *limit,
            struct rlimit *former) {
    ORIGINAL(prlimit)
    if (limit) {
        samovar_note_irreversible(LEAVE_PRIVILEGES);
    }
    return original(pid, what, limit, former);
}

int prlimit64(pid_t pid, __rlimit_resource_t what, const struct rlimit64 *limit,
              struct rlimit64 *former) {
    ORIGINAL(prlimit64)
    if (limit) {
        samovar_note_irreversible(LEAVE_PRIVILEGES);
    }
    return original(pid, what, limit, former);
}

/* System calls that have no function in libc, or that are made by number. libc's own functions
 * do not pass here, and the calls that this program itself makes are not on the list. */
static bool is_irreversible(long number) {
    switch (number) {
    case SYS_capset:
    case SYS_chroot:
    case SYS_ioprio_set:
    case SYS_mlockall:
    case SYS_munlockall:
    case SYS_personality:
    case SYS_pivot_root:
    case SYS_prlimit64:
    case SYS_sched_setaffinity:
    case SYS_sched_setattr:
    case SYS_sched_setparam:
    case SYS_sched_setscheduler:
    case SYS_seccomp:
    case SYS_set_mempolicy:
    case SYS_setfsgid:
    case SYS_setfsuid:
    case SYS_setgid:
    case SYS_setgroups:
    case SYS_setns:
    case SYS_setpgid:
    case SYS_setpriority:
    case SYS_setregid:
    case SYS_setresgid:
    case SYS_setresuid:
    case SYS_setreuid:
    case SYS_setrlimit:
    case SYS_setsid:
    case SYS_setuid:
    case SYS_unshare:
        return true;
    default:
        return false;
    }
}

/* Keys of the kernel belong to the process, its session or its user. */
static bool adds_key(long number, long operation) {
    return number == SYS_add_key ||
           (number == SYS_keyctl && operation == KEYCTL_JOIN_SESSION_KEYRING);
}

long syscall(long number, ...) {
    ORIGINAL(syscall)
    va_list more;
    va_start(more, number);
    long a = va_arg(more, long), b = va_arg(more, long), c = va_arg(more, long);
    long d = va_arg(more, long), e = va_arg(more, long), f = va_arg(more, long);
    va_end(more);
    if (is_irreversible(number)) {
        samovar_note_irreversible(LEAVE_PRIVILEGES);
    }
    if (adds_key(number, a)) {
        samovar_boot_opened(BOOT_KEY);
        samovar_note_irreversible(LEAVE_PRIVILEGES);
    }
    return original(number, a, b, c, d, e, f);
}
