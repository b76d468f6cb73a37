/* Properties of a descriptor, from the kernel: its name, socket options, stat(). */
#define _GNU_SOURCE
#include "outside/descriptor.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

void samovar_for_each_descriptor(samovar_visit_descriptor *visit, void *data) {
    DIR *folder = opendir("/proc/self/fd");
    if (!folder) {
        return;
    }
    for (const struct dirent *e; (e = readdir(folder));) {
        int fd = atoi(e->d_name);
        if (e->d_name[0] != '.' && fd != dirfd(folder)) {
            visit(fd, data);
        }
    }
    closedir(folder);
}

void samovar_descriptor_name(int fd, char *to) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, to, DESCRIPTOR_TEXT - 1);
    to[n > 0 ? n : 0] = 0;
}

void samovar_descriptor_peer_name(const struct sockaddr_storage *peer, char *to) {
    char address[INET6_ADDRSTRLEN] = "";
    if (peer->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)peer;
        inet_ntop(AF_INET, &in->sin_addr, address, sizeof address);
        snprintf(to, DESCRIPTOR_TEXT, "a connection to %s:%u", address, ntohs(in->sin_port));
    } else if (peer->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const void *)peer;
        inet_ntop(AF_INET6, &in->sin6_addr, address, sizeof address);
        snprintf(to, DESCRIPTOR_TEXT, "a connection to [%s]:%u", address, ntohs(in->sin6_port));
    } else {
        const struct sockaddr_un *un = (const void *)peer;
        snprintf(to, DESCRIPTOR_TEXT, "a connection to %s",
                 un->sun_path[0] ? un->sun_path : "a unix socket");
    }
}

bool samovar_socket_has(int fd, int option) {
    int value = 0;
    socklen_t len = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 && value;
}

bool samovar_is_datagram(int fd) {
    int type = 0;
    socklen_t len = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_DGRAM;
}

bool samovar_is_connection(int fd, struct sockaddr_storage *peer) {
    socklen_t len = sizeof *peer;
    memset(peer, 0, sizeof *peer);
    return getpeername(fd, (struct sockaddr *)peer, &len) == 0;
}

bool samovar_is_stateless(const char *name) {
    const char *const names[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
                                 "/dev/urandom"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Returns true if the name is one of PHP's temporary files, whose names are removed when they
 * are closed. */
static bool is_phps_own(int fd) {
    char name[DESCRIPTOR_TEXT];
    samovar_descriptor_name(fd, name);
    const char *base = strrchr(name, '/');
    return base && strncmp(base, "/php", 4) == 0 && strlen(base) == strlen("/phpXXXXXX") &&
           strspn(base + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == 9;
}

bool samovar_is_temporary(int fd, const struct stat *info) {
    return S_ISREG(info->st_mode) && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY &&
           (info->st_nlink == 0 || is_phps_own(fd));
}
