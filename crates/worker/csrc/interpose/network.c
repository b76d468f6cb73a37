/* Refusal of network traffic, for replays of requests: the calls fail with EACCES, as under a
 * security policy. Reads are not refused. Calls inside libc (lookups of names) are not seen. */
#define _GNU_SOURCE
#include "interpose/network.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

bool samovar_network_refused;
static bool is_logged;

void samovar_network_open(bool is_refused) {
    samovar_network_refused = is_refused;
    is_logged = false;
}

static bool refused(const char *what) {
    if (!is_logged) {
        is_logged = true;
        char line[256];
        const int len = snprintf(line, sizeof line, "PHP Samovar: replay: %s was refused\n", what);
        /* The worker's messages go to the server's log. If that fails, one is missing. */
        (void)!syscall(SYS_write, STDERR_FILENO, line, (size_t)len);
    }
    errno = EACCES;
    return true;
}

bool samovar_refuses_write(int fd) {
    struct stat file;
    if (fstat(fd, &file) != 0 || !S_ISSOCK(file.st_mode)) {
        return false;
    }
    return refused("a write to a socket");
}

bool samovar_refuses_connection(const void *address, size_t len) {
    char peer[INET6_ADDRSTRLEN] = "";
    char what[192] = "a connection";
    struct sockaddr_storage to = {0};
    memcpy(&to, address, len < sizeof to ? len : sizeof to);
    if (to.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&to;
        inet_ntop(AF_INET, &in->sin_addr, peer, sizeof peer);
        snprintf(what, sizeof what, "a connection to %s:%u", peer, ntohs(in->sin_port));
    } else if (to.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)&to;
        inet_ntop(AF_INET6, &in->sin6_addr, peer, sizeof peer);
        snprintf(what, sizeof what, "a connection to [%s]:%u", peer, ntohs(in->sin6_port));
    } else if (to.ss_family == AF_UNIX) {
        const struct sockaddr_un *un = (const struct sockaddr_un *)&to;
        snprintf(what, sizeof what, "a connection to `%.100s`", un->sun_path);
    }
    return refused(what);
}

bool samovar_refuses_process(void) {
    return refused("a new process");
}
