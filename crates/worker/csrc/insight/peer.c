/* Names of peers: addresses of sockets, classes of files. */
#define _GNU_SOURCE
#include "insight/peer.h"
#include "outside/descriptor.h"
#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <sys/select.h>
#include <sys/un.h>

/* Longest path of the kernel, with its " (deleted)". A truncated path would be another name. */
enum { PATH_BYTES = PATH_MAX + 16 };

/* Stores the class of a path: the path itself may contain a secret. */
static void name_file(short_name *peer, const char *path, size_t len) {
    uint8_t text[NAME_BYTES];
    const size_t bytes = samovar_file_class((const uint8_t *)path, len, text, sizeof text);
    samovar_short_name(peer, (const char *)text, bytes);
}

/* ---- sockets ------------------------------------------------------------------------------- */

static void name_inet(short_name *peer, int family, const void *address, in_port_t port) {
    char text[INET6_ADDRSTRLEN + sizeof "[]:65535"], number[INET6_ADDRSTRLEN] = "";
    inet_ntop(family, address, number, sizeof number);
    const char *format = family == AF_INET6 ? "[%s]:%u" : "%s:%u";
    const int len = snprintf(text, sizeof text, format, number, ntohs(port));
    samovar_short_name(peer, text, (size_t)len);
}

/* A name that begins with a NUL is shown as Linux tools show it. */
static void name_unix(short_name *peer, const struct sockaddr_un *address, size_t len) {
    const size_t before = offsetof(struct sockaddr_un, sun_path);
    char text[sizeof address->sun_path];
    const size_t room = len > before ? MIN(len - before, sizeof text) : 0;
    memcpy(text, address->sun_path, room);
    if (room > 0 && text[0] == 0) {
        text[0] = '@';
        name_file(peer, text, room);
        return;
    }
    name_file(peer, text, strnlen(text, room));
}

wait_kind samovar_peer_at(int fd, const void *address, size_t len, short_name *peer) {
    peer->len = 0;
    const sa_family_t family =
        address && len >= sizeof(sa_family_t) ? ((const struct sockaddr *)address)->sa_family : 0;
    if (family == AF_UNIX) {
        name_unix(peer, address, len);
        return WAIT_UNIX;
    }
    if (family == AF_INET && len >= sizeof(struct sockaddr_in)) {
        const struct sockaddr_in *in = address;
        name_inet(peer, AF_INET, &in->sin_addr, in->sin_port);
    } else if (family == AF_INET6 && len >= sizeof(struct sockaddr_in6)) {
        const struct sockaddr_in6 *in = address;
        name_inet(peer, AF_INET6, &in->sin6_addr, in->sin6_port);
    } else {
        return WAIT_OTHER;
    }
    return samovar_is_datagram(fd) ? WAIT_UDP : WAIT_TCP;
}

/* ---- descriptors --------------------------------------------------------------------------- */

void samovar_file_of(int fd, short_name *peer) {
    char link[sizeof "/proc/self/fd/" + 16], text[PATH_BYTES];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t len = readlink(link, text, sizeof text);
    name_file(peer, text, len > 0 ? (size_t)len : 0);
}

/* Names the file of a descriptor that is not a connected socket. */
static wait_kind peer_of_file(int fd, short_name *peer) {
    struct stat info;
    peer->len = 0;
    if (fstat(fd, &info) != 0) {
        return WAIT_OTHER;
    }
    switch (info.st_mode & S_IFMT) {
    case S_IFREG:
    case S_IFBLK:
    case S_IFDIR:
        samovar_file_of(fd, peer);
        return WAIT_FILE;
    case S_IFIFO:
    case S_IFCHR:
        return WAIT_PIPE;
    default:
        return WAIT_OTHER;
    }
}

wait_kind samovar_peer_of(int fd, short_name *peer) {
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    if (getpeername(fd, (struct sockaddr *)&address, &len) == 0) {
        return samovar_peer_at(fd, &address, MIN(len, sizeof address), peer);
    }
    return peer_of_file(fd, peer);
}

/* ---- several descriptors at once ----------------------------------------------------------- */

int samovar_polled(const blocking_call *call, long ready) {
    const struct pollfd *fds = call->what;
    for (size_t i = 0; ready > 0 && i < call->count; i++) {
        if (fds[i].revents && fds[i].fd >= 0) {
            return fds[i].fd;
        }
    }
    return call->count == 1 ? fds[0].fd : -1;
}

static bool is_selected(const blocking_call *call, size_t fd) {
    for (size_t set = 1; set <= 3; set++) {
        const fd_set *fds = (const fd_set *)call->argument[set];
        if (fds && FD_ISSET(fd, fds)) {
            return true;
        }
    }
    return false;
}

int samovar_selected(const blocking_call *call) {
    for (size_t fd = 0; fd < call->count; fd++) {
        if (is_selected(call, fd)) {
            return (int)fd;
        }
    }
    return -1;
}

int samovar_selected_alone(const blocking_call *call) {
    const int only = samovar_selected(call);
    for (size_t fd = (size_t)only + 1; only >= 0 && fd < call->count; fd++) {
        if (is_selected(call, fd)) {
            return -1;
        }
    }
    return only;
}
