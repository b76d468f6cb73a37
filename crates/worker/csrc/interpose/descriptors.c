/* open, close, dup, fcntl, ioctl, socket, pipe: closing a descriptor of the image ends the
 * worker. Descriptors that the boot opens are recorded with their line. */
#define _GNU_SOURCE
#include "interpose/blocking.h"
#include "interpose/original.h"
#include "memory/persistent.h"
#include "outside/boot.h"
#include "outside/connection_protocols.h"
#include "outside/descendants.h"
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_images_descriptor(int fd) {
    return samovar_persistent && samovar_set_has(&samovar_kept_state()->open, fd);
}

static void note_lost(int fd) {
    if (is_images_descriptor(fd)) {
        samovar_persistent->leave = LEAVE_DESCRIPTOR;
    }
}

/* Its number will soon belong to another file. */
static void note_closing(int fd) {
    samovar_descriptor_changes++;
    note_lost(fd);
    if (samovar_close_watcher) {
        samovar_close_watcher(fd);
    }
}

int close(int fd) {
    note_closing(fd);
    return (int)samovar_system_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* The use of a copy is not observed, and programs that a request starts have it, too. */
static void note_copy(int from) {
    samovar_talk_other(from);
    samovar_descendants_share(from);
}

int dup(int from) {
    note_copy(from);
    return (int)syscall(SYS_dup, from);
}

int dup3(int from, int to, int flags) {
    note_closing(to);
    note_copy(from);
    return (int)syscall(SYS_dup3, from, to, flags);
}

int dup2(int from, int to) {
    if (from == to) {
        return fcntl(from, F_GETFD) < 0 ? -1 : to;
    }
    return dup3(from, to, 0);
}

/* A copy is not watched. Locks of an open file description, leases and notification settings
 * belong to the open file, and the image keeps that file open. */
static void note_control(int fd, int what) {
    switch (what) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
        note_copy(fd);
        return;
    case F_SETFD:
        samovar_descendants_share(fd);
        return;
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
    case F_SETLEASE:
    case F_NOTIFY:
        if (is_images_descriptor(fd)) {
            samovar_persistent->leave = LEAVE_LOCK;
        }
        return;
    case F_SETOWN:
    case F_SETOWN_EX:
    case F_SETSIG:
    case F_SETPIPE_SZ:
    case F_ADD_SEALS:
        if (is_images_descriptor(fd)) {
            samovar_persistent->leave = LEAVE_DESCRIPTOR;
        }
        return;
    default:
        return;
    }
}

int fcntl(int fd, int what, ...) {
    ORIGINAL(fcntl)
    va_list more;
    va_start(more, what);
    void *argument = va_arg(more, void *);
    va_end(more);
    note_control(fd, what);
    if (what == F_SETLKW || what == F_OFD_SETLKW) {
        return (int)BLOCKING(BLOCKS_LOCK, fd, SYS_fcntl, fd, what, argument, 0, 0, 0);
    }
    return original(fd, what, argument);
}

int fcntl64(int fd, int what, ...) __attribute__((alias("fcntl")));

/* FIONBIO sets a flag that is restored with the descriptor's flags. FIOCLEX and FIONCLEX set
 * close-on-exec. The others only read. */
static bool is_harmless(unsigned long what) {
    return what == FIONREAD || what == FIONBIO || what == FIOCLEX || what == FIONCLEX ||
           what == TCGETS || what == TIOCGWINSZ;
}

int ioctl(int fd, unsigned long what, ...) {
    va_list more;
    va_start(more, what);
    void *argument = va_arg(more, void *);
    va_end(more);
    if (!is_harmless(what)) {
        samovar_talk_other(fd);
    }
    if (what == FIONCLEX) {
        samovar_descendants_share(fd);
    }
    return (int)syscall(SYS_ioctl, fd, what, argument);
}

/* Files below /proc are settings of the process itself: its name, its limits, its weight. Its
 * descriptors are an exception, because they are other files: /proc/1/fd/2 is a container's log. */
static bool is_setting(const char *path) {
    return (strncmp(path, "/proc/", 6) == 0 && !strstr(path, "/fd/")) ||
           strncmp(path, "/sys/fs/cgroup/", 15) == 0;
}

/* Detects another way to open a descriptor of this process, which is not watched. */
static void note_copied(const char *path) {
    const char *const folders[] = {"/proc/self/fd/", "/dev/fd/"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        const size_t len = strlen(folders[i]);
        if (strncmp(path, folders[i], len) == 0) {
            note_copy(atoi(path + len));
        }
    }
}

static void note_opened(const char *path, int flags) {
    note_copied(path);
    if ((flags & O_ACCMODE) != O_RDONLY && is_setting(path)) {
        samovar_note_irreversible(LEAVE_PRIVILEGES);
    }
}

static mode_t mode_of(int flags, va_list more) {
    /* O_TMPFILE contains the bit of O_DIRECTORY, which does not imply a mode. */
    const bool has_mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
    return has_mode ? va_arg(more, mode_t) : 0;
}

int open(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = mode_of(flags, more);
    va_end(more);
    note_opened(path, flags);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    samovar_boot_opened(fd);
    return fd;
}

int openat(int folder, const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = mode_of(flags, more);
    va_end(more);
    note_opened(path, flags);
    int fd = (int)syscall(SYS_openat, folder, path, flags, mode);
    samovar_boot_opened(fd);
    return fd;
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));
int openat64(int folder, const char *path, int flags, ...) __attribute__((alias("openat")));

/* libc may have closed a descriptor internally, and this one may get its number. */
int socket(int domain, int type, int protocol) {
    samovar_descriptor_changes++;
    int fd = (int)syscall(SYS_socket, domain, type, protocol);
    samovar_boot_opened(fd);
    return fd;
}

int accept4(int fd, __SOCKADDR_ARG from, socklen_t *from_len, int flags) {
    const struct sockaddr *address = from.__sockaddr__;
    samovar_descriptor_changes++;
    int made = (int)BLOCKING(BLOCKS_ACCEPT, fd, SYS_accept4, fd, address, from_len, flags, 0, 0);
    samovar_boot_opened(made);
    return made;
}

int accept(int fd, __SOCKADDR_ARG from, socklen_t *from_len) {
    return accept4(fd, from, from_len, 0);
}

int socketpair(int domain, int type, int protocol, int fds[2]) {
    int result = (int)syscall(SYS_socketpair, domain, type, protocol, fds);
    if (result == 0) {
        samovar_boot_opened(fds[0]);
        samovar_boot_opened(fds[1]);
    }
    return result;
}

int pipe(int fds[2]) {
    int result = (int)syscall(SYS_pipe2, fds, 0);
    if (result == 0) {
        samovar_boot_opened(fds[0]);
        samovar_boot_opened(fds[1]);
    }
    return result;
}
