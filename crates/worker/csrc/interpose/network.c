/* Refusal of network traffic, for replays of requests: the calls fail with EACCES, as under a
 * security policy. Reads are not refused. Connections that libc makes itself (lookups of names,
 * syslog()) are not seen. New processes and programs are refused by the kernel, too, because
 * libraries start them without a call of our functions (refused_calls.c). */
#define _GNU_SOURCE
#include "interpose/network.h"
#include "interpose/refused_calls.h"
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

/* The worker's messages go to the server's log. If that fails, one is missing. */
static void log_line(const char *line) {
    (void)!syscall(SYS_write, STDERR_FILENO, line, strlen(line));
}

void samovar_network_open(bool is_refused) {
    samovar_network_refused = is_refused;
    is_logged = false;
    if (is_refused && !samovar_refuse_calls()) {
        log_line("PHP Samovar: replay: the kernel cannot refuse new processes of libraries\n");
    }
}

static bool refused(const char *what) {
    if (!is_logged) {
        is_logged = true;
        char line[256];
        snprintf(line, sizeof line, "PHP Samovar: replay: %s was refused\n", what);
        log_line(line);
    }
    errno = EACCES;
    return true;
}

/* Whether a pipe has a name in the file system, so that another process may read from it. Pipes
 * without a name are those of the request, and the worker's own. */
static bool is_named(int fd) {
    char link[48], target[8] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t len = readlink(link, target, sizeof target);
    return len < 5 || memcmp(target, "pipe:", 5) != 0;
}

bool samovar_refuses_write(int fd) {
    struct stat file;
    if (fstat(fd, &file) != 0) {
        return false;
    }
    if (S_ISFIFO(file.st_mode) && is_named(fd)) {
        return refused("a write to a named pipe");
    }
    return S_ISSOCK(file.st_mode) && refused("a write to a socket");
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
