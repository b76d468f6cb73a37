/* A filter of system calls (seccomp) for the process of a replay whose network traffic is refused.
 *
 * The functions of this folder refuse calls of PHP and of extensions, and log them. Libraries and
 * libc also start processes without a call of them: system(), vfork(), exec functions. A program
 * that a replay starts would not be restricted. It is no sandbox: code that makes its own system
 * calls, as with FFI, can still write to a socket. */
#define _GNU_SOURCE
#include "interpose/refused_calls.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef ARCHITECTURE

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, value)
#define FAIL(error) RETURN(SECCOMP_RET_ERRNO | (error))
/* Continues with the next statement if the value is `is`, otherwise with the one after it. */
#define IF(is) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, is, 0, 1)
#define REFUSE(call) IF(call), FAIL(EACCES)

static const struct sock_filter filter[] = {
    /* Programs of another architecture have other numbers. */
    LOAD(arch),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
    FAIL(EACCES),
    LOAD(nr),
#ifdef __x86_64__
    /* The x32 interface has its numbers from this bit on. */
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1),
    FAIL(EACCES),
    REFUSE(SYS_fork),
    REFUSE(SYS_vfork),
#endif
    REFUSE(SYS_execve),
    REFUSE(SYS_execveat),
    REFUSE(SYS_msgsnd),
    REFUSE(SYS_mq_timedsend),
    REFUSE(SYS_io_uring_setup),
    /* Its flags are in memory, which a filter cannot read. libc then calls clone(). */
    IF(SYS_clone3),
    FAIL(ENOSYS),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
    LOAD(args[0]),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0),
    FAIL(EACCES),
    RETURN(SECCOMP_RET_ALLOW),
};

#define LENGTH (sizeof filter / sizeof *filter)

static bool is_installed;

/* Installs the filter for all threads: an extension may have started some. Linux before 3.17 and
 * threads with other filters refuse that, so the filter is then only for this thread and its later
 * ones. The result is positive, the id of such a thread, if it has another filter. */
static bool install(void) {
    const struct sock_fprog program = {.len = LENGTH, .filter = (struct sock_filter *)filter};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) ==
               0 ||
           syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool samovar_refuse_calls(void) {
    /* Without the first one, only root may install a filter. */
    is_installed =
        is_installed || (syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && install());
    return is_installed;
}

#else

bool samovar_refuse_calls(void) {
    return false;
}

#endif
