/* posix_spawn, popen, pthread_create: processes and threads that run next to a request; and
 * waits for their end. startup.c is notified of fork() by pthread_atfork(). */
#define _GNU_SOURCE
#include "interpose/blocking.h"
#include "interpose/network.h"
#include "interpose/original.h"
#include "memory/hot.h"
#include "outside/boot.h"
#include "outside/descendants.h"
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <threads.h>

/* proc_open() starts its processes with it since 8.4. It calls no handler of pthread_atfork(). */
int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) {
    ORIGINAL(posix_spawn)
    if (REFUSES(samovar_refuses_process())) {
        return EACCES;
    }
    NOTE(samovar_hot_state()->others_wrote);
    samovar_descendants_spawn();
    samovar_boot_opened(BOOT_CHILD);
    return original(pid, path, actions, attributes, argv, envp);
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) {
    ORIGINAL(posix_spawnp)
    if (REFUSES(samovar_refuses_process())) {
        return EACCES;
    }
    NOTE(samovar_hot_state()->others_wrote);
    samovar_descendants_spawn();
    samovar_boot_opened(BOOT_CHILD);
    return original(pid, file, actions, attributes, argv, envp);
}

/* libc's popen() makes its pipe and its process without a call of our functions. */
FILE *popen(const char *command, const char *mode) {
    ORIGINAL(popen)
    if (REFUSES(samovar_refuses_process())) {
        return NULL;
    }
    NOTE(samovar_hot_state()->others_wrote);
    samovar_descendants_spawn();
    FILE *stream = original(command, mode);
    if (stream) {
        samovar_boot_opened(fileno(stream));
        samovar_boot_opened(BOOT_CHILD);
    }
    return stream;
}

/* Programs that a replay starts would not be restricted. */
pid_t fork(void) {
    ORIGINAL(fork)
    if (REFUSES(samovar_refuses_process())) {
        return -1;
    }
    return original();
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg) {
    ORIGINAL(pthread_create)
    NOTE(samovar_hot_state()->threads_started);
    samovar_boot_opened(BOOT_THREAD);
    return original(thread, attr, run, arg);
}

int thrd_create(thrd_t *thread, thrd_start_t run, void *arg) {
    ORIGINAL(thrd_create)
    NOTE(samovar_hot_state()->threads_started);
    samovar_boot_opened(BOOT_THREAD);
    return original(thread, run, arg);
}

/* ---- the end of a child -------------------------------------------------------------------- */

pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage) {
    if (options & WNOHANG) {
        return (pid_t)syscall(SYS_wait4, pid, status, options, usage);
    }
    return (pid_t)BLOCKING(BLOCKS_CHILD, -1, SYS_wait4, pid, status, options, usage, 0, 0);
}

pid_t waitpid(pid_t pid, int *status, int options) {
    return wait4(pid, status, options, NULL);
}

pid_t wait(int *status) {
    return wait4(-1, status, 0, NULL);
}

pid_t wait3(int *status, int options, struct rusage *usage) {
    return wait4(-1, status, options, usage);
}

int waitid(idtype_t type, id_t id, siginfo_t *info, int options) {
    if (options & WNOHANG) {
        return (int)syscall(SYS_waitid, type, id, info, options, NULL);
    }
    return (int)BLOCKING(BLOCKS_CHILD, -1, SYS_waitid, type, id, info, options, NULL, 0);
}

/* libc's pclose() waits without a call of our functions. */
int pclose(FILE *stream) {
    ORIGINAL(pclose)
    return (int)BLOCKING_FUNCTION(BLOCKS_CHILD, NULL, original, SAMOVAR_ARGUMENT(stream));
}
