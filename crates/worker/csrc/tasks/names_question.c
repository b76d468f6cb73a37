/* Encodes a task's name query for the resolver, and detects names that need no query. */
#define _GNU_SOURCE
#include "tasks/names.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HOSTS_BYTES_MAX = 256 << 10 /* of /etc/hosts; a longer file is ignored */ };

/* ---- names that need no query -------------------------------------------------------------- */

static bool is_address(const char *host) {
    struct in6_addr any;
    return inet_pton(AF_INET6, host, &any) == 1 || inet_aton(host, (struct in_addr *)&any) != 0 ||
           strchr(host, '%') || strchr(host, ':');
}

static bool line_has(const char *line, const char *end, const char *host, size_t len) {
    const char *at = line;
    for (bool is_name = false; at < end && *at != '#'; is_name = true) {
        while (at < end && isspace((unsigned char)*at)) {
            at++;
        }
        const char *word = at;
        while (at < end && *at != '#' && !isspace((unsigned char)*at)) {
            at++;
        }
        if (is_name && (size_t)(at - word) == len && strncasecmp(word, host, len) == 0) {
            return true;
        }
    }
    return false;
}

static bool text_has(const char *text, size_t bytes, const char *host) {
    const size_t len = strlen(host);
    for (const char *line = text, *last = text + bytes; line < last;) {
        const char *end = memchr(line, '\n', (size_t)(last - line));
        end = end ? end : last;
        if (line_has(line, end, host, len)) {
            return true;
        }
        line = end + 1;
    }
    return false;
}

/* The names of most databases are there, and need no query. */
static bool is_in_hosts(const char *host) {
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, "/etc/hosts", O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (fd < 0) {
        return false;
    }
    bool has = false;
    if (fstat(fd, &info) == 0 && info.st_size <= HOSTS_BYTES_MAX) {
        char *text = malloc((size_t)info.st_size + 1);
        const long n = text ? syscall(SYS_read, fd, text, info.st_size) : -1;
        has = n > 0 && text_has(text, (size_t)n, host);
        free(text);
    }
    syscall(SYS_close, fd);
    return has;
}

static bool is_known_here(const char *host) {
    return !host || !*host || is_address(host) || is_in_hosts(host);
}

/* ---- the query ----------------------------------------------------------------------------- */

static bool add(names_question *q, uint32_t *used, const void *from, size_t len) {
    if (len > sizeof q->text - *used) {
        return false;
    }
    memcpy(q->text + *used, from, len);
    *used += (uint32_t)len;
    return true;
}

static bool add_host(names_question *q, uint32_t *used, const char *host) {
    q->has_host = host != NULL;
    q->host_len = host ? (uint32_t)strnlen(host, NAMES_TEXT_MAX) + 1 : 0;
    return add(q, used, host ? host : "", q->host_len);
}

static bool put_addresses(names_question *q, uint32_t *used, const long *a) {
    const char *host = (const char *)a[0], *service = (const char *)a[1];
    const struct addrinfo *hints = (const struct addrinfo *)a[2];
    if (is_known_here(host) || (hints && hints->ai_flags & AI_NUMERICHOST)) {
        return false;
    }
    q->has_service = service != NULL;
    q->service_len = service ? (uint32_t)strnlen(service, NAMES_TEXT_MAX) + 1 : 0;
    q->has_hints = hints != NULL;
    if (hints) {
        q->hints = (struct addrinfo){.ai_flags = hints->ai_flags,
                                     .ai_family = hints->ai_family,
                                     .ai_socktype = hints->ai_socktype,
                                     .ai_protocol = hints->ai_protocol};
    }
    return add_host(q, used, host) && add(q, used, service ? service : "", q->service_len);
}

static bool put_name(names_question *q, uint32_t *used, const long *a) {
    const struct sockaddr *address = (const struct sockaddr *)a[0];
    q->flags = (int)a[6];
    q->address_len = (uint32_t)a[1];
    q->host_room = a[2] ? (uint32_t)a[3] : 0;
    q->service_room = a[4] ? (uint32_t)a[5] : 0;
    return q->host_room > 0 && !(q->flags & NI_NUMERICHOST) && address &&
           q->address_len >= sizeof address->sa_family && address->sa_family != AF_UNIX &&
           add(q, used, address, q->address_len);
}

static bool put_bytes(names_question *q, uint32_t *used, const long *a) {
    q->address_len = (uint32_t)a[1];
    q->family = (int)a[2];
    return a[0] && add(q, used, (const void *)a[0], q->address_len);
}

static bool put_records(names_question *q, uint32_t *used, const char *host, const long *a) {
    q->dns_class = (int)a[0];
    q->dns_type = (int)a[1];
    q->dns_room = (int)a[3];
    return host && q->dns_room > 0 && add_host(q, used, host);
}

bool samovar_names_put(names_question *q, const blocking_call *call) {
    const long *a = call->argument;
    uint32_t used = 0;
    q->function = (names_function)call->count;
    switch (q->function) {
    case NAMES_GETADDRINFO:
        return put_addresses(q, &used, a);
    case NAMES_GETNAMEINFO:
        return put_name(q, &used, a);
    case NAMES_GETHOSTBYADDR:
    case NAMES_GETHOSTBYADDR_R:
        return put_bytes(q, &used, a);
    case NAMES_GETHOSTBYNAME2:
        q->family = (int)a[1];
        return !is_known_here(call->what) && add_host(q, &used, call->what);
    case NAMES_GETHOSTBYNAME:
    case NAMES_GETHOSTBYNAME_R:
        return !is_known_here(call->what) && add_host(q, &used, call->what);
    case NAMES_RES_QUERY:
        return put_records(q, &used, call->what, a + 1);
    case NAMES_RES_NSEARCH: {
        const struct __res_state *state = (const struct __res_state *)a[0];
        q->has_state = state && state->options & RES_INIT;
        if (q->has_state) {
            q->options = state->options;
            q->retrans = state->retrans;
            q->retry = state->retry;
        }
        return put_records(q, &used, call->what, a + 2);
    }
    }
    return false;
}
