/* Start of a worker: the descriptors that the boot has left open. The worker replaces
 * descriptors that it must not share with other workers. put_back.c restores them after each
 * request; connection_protocols.c follows their use by requests. */
#define _GNU_SOURCE
#include "outside/inherited_fds.h"
#include "memory/image.h"
#include "outside/boot.h"
#include "outside/locks.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <unistd.h>

/* True if other workers are forked from the same image. */
static bool shares_image;

/* Opens the file again, because all workers would share the position of a shared file. Not where
 * each worker boots the application itself: closing any descriptor of a file releases the POSIX
 * locks on it. */
static void reopen(int fd) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const int flags = fcntl(fd, F_GETFL), close_on_exec = fcntl(fd, F_GETFD);
    const off_t offset = lseek(fd, 0, SEEK_CUR);
    int own = open(path, (flags & (O_ACCMODE | O_APPEND | O_NONBLOCK | O_DIRECTORY)) | O_CLOEXEC);
    if (own < 0) {
        return;
    }
    lseek(own, offset, SEEK_SET);
    dup3(own, fd, close_on_exec & FD_CLOEXEC ? O_CLOEXEC : 0);
    close(own);
}

static int socket_option(int fd, int option) {
    int value = 0;
    socklen_t len = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 ? value : -1;
}

/* Replaces the socket by one of the worker's own. A response to data that this worker sends must
 * not reach another worker, and neither must an address that a request gives the socket. A
 * socket that was bound or given options above is left alone. */
static void own_socket(int fd) {
    struct sockaddr_storage peer;
    const int family = socket_option(fd, SO_DOMAIN), type = socket_option(fd, SO_TYPE);
    socklen_t len;
    if (samovar_socket_has(fd, SO_ACCEPTCONN) || samovar_boot_is_bound(fd) ||
        samovar_boot_is_tuned(fd) || (family != AF_INET && family != AF_INET6)) {
        return;
    }
    const int own = socket(family, type | SOCK_CLOEXEC, socket_option(fd, SO_PROTOCOL));
    const int broadcast = samovar_socket_has(fd, SO_BROADCAST);
    len = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    if (own >= 0 && setsockopt(own, SOL_SOCKET, SO_BROADCAST, &broadcast, sizeof broadcast) == 0 &&
        fcntl(own, F_SETFL, fcntl(fd, F_GETFL)) == 0 &&
        (!samovar_is_connection(fd, &peer) || connect(own, (struct sockaddr *)&peer, len) == 0)) {
        dup3(own, fd, fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0);
    }
    if (own >= 0) {
        close(own);
    }
}

static kept_kind kind_of_socket(int fd) {
    struct sockaddr_storage peer;
    if (samovar_is_datagram(fd)) {
        return KEPT_DATAGRAM;
    }
    return samovar_is_connection(fd, &peer) ? KEPT_CONNECTION : KEPT_OTHER;
}

/* Has a descriptor watched that a rollback cannot restore (connection_protocols.c). */
static void watch(kept_state *s, int fd, const struct stat *info) {
    char name[DESCRIPTOR_TEXT];
    samovar_descriptor_name(fd, name);
    if (S_ISCHR(info->st_mode) && samovar_is_stateless(name)) {
        return;
    }
    const kept_kind kind = S_ISSOCK(info->st_mode) ? kind_of_socket(fd) : KEPT_OTHER;
    if (kind == KEPT_DATAGRAM) {
        s->has_datagrams = true;
    }
    if (S_ISSOCK(info->st_mode) && kind != KEPT_CONNECTION) {
        own_socket(fd);
    }
    s->list[s->count++] =
        (kept_descriptor){.fd = fd,
                          .flags = fcntl(fd, F_GETFL),
                          .offset = -1,
                          .kind = kind,
                          /* Responses to all workers arrive on it. */
                          .asked_before = shares_image && samovar_boot_is_tuned(fd)};
}

static void keep(int fd, void *data) {
    kept_state *s = data;
    struct stat info;
    if (samovar_boot_was_there(fd) || s->count == KEPT_MAX || fstat(fd, &info) != 0) {
        return;
    }
    if (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) {
        kept_descriptor *k = &s->list[s->count++];
        *k = (kept_descriptor){.fd = fd, .flags = fcntl(fd, F_GETFL)};
        k->locks = samovar_locks_in_short(fd);
        if (!samovar_locks_range(fd, &k->locked_from, &k->locked_to) && shares_image) {
            reopen(fd);
        }
        k->offset = lseek(fd, 0, SEEK_CUR);
    } else {
        watch(s, fd, &info);
    }
}

static bool are_same_file(int a, int b) {
    struct stat of_a, of_b;
    return fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

/* Locks of a range belong to the file and the process: releasing them through another descriptor
 * of the file releases them, too. */
static void share_ranges(kept_state *s) {
    for (uint32_t i = 0; i < s->count; i++) {
        for (uint32_t j = 0; s->list[i].locks != 0 && j < s->count; j++) {
            kept_descriptor *k = &s->list[j];
            if (k->locks == 0 && k->kind == KEPT_FILE && are_same_file(s->list[i].fd, k->fd)) {
                k->locked_from = s->list[i].locked_from;
                k->locked_to = s->list[i].locked_to;
            }
        }
    }
}

/* Replaces the file by a copy, at the same position. Its time is set to zero, and any write of a
 * request changes that. */
static bool copy_file(int fd, const struct stat *info) {
    const struct timespec never[2] = {{0}, {0}};
    const off_t offset = lseek(fd, 0, SEEK_CUR);
    const int flags = fcntl(fd, F_GETFL), close_on_exec = fcntl(fd, F_GETFD);
    const int own = samovar_memory_file();
    if (own < 0) {
        return false;
    }
    off_t from = 0;
    while (from < info->st_size && sendfile(own, fd, &from, (size_t)(info->st_size - from)) > 0) {
    }
    const bool is_whole = from == info->st_size && lseek(own, offset, SEEK_SET) == offset &&
                          fcntl(own, F_SETFL, flags) == 0 && futimens(own, never) == 0 &&
                          dup3(own, fd, close_on_exec & FD_CLOEXEC ? O_CLOEXEC : 0) == fd;
    close(own);
    return is_whole;
}

static bool could_know;

static void know(int fd, void *data) {
    kept_state *s = data;
    struct stat info;
    if (samovar_boot_was_there(fd) || fstat(fd, &info) != 0) {
        return;
    }
    known_descriptor k = {.fd = fd, .is_copy = samovar_is_temporary(fd, &info)};
    if (s->known_count == KEPT_MAX ||
        (k.is_copy && (!copy_file(fd, &info) || fstat(fd, &info) != 0))) {
        could_know = false;
        return;
    }
    k.access = fcntl(fd, F_GETFL) & O_ACCMODE;
    k.device = info.st_dev;
    k.inode = info.st_ino;
    s->known[s->known_count++] = k;
}

/* A program in the background would keep a connection open when its worker leaves, together with
 * the locks of its session, and could read the responses to later requests. The copies that
 * proc_open() makes of its descriptors stay open. */
static void close_on_exec(int fd, void *data) {
    (void)data;
    if (fd > STDERR_FILENO && !samovar_boot_was_there(fd)) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
}

bool samovar_kept_begin(kept_state *s, bool is_shared) {
    shares_image = is_shared;
    samovar_for_each_descriptor(close_on_exec, NULL);
    samovar_for_each_descriptor(keep, s);
    share_ranges(s);
    could_know = true;
    samovar_for_each_descriptor(know, s);
    return could_know;
}
