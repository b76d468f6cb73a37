/* The process that looks up names on behalf of tasks, with one thread per query.
 *
 * It is a copy of the worker, forked in the middle of a request, and uses only libc. It keeps
 * nothing of the worker: no descriptor, no signal, no word of shared memory. */
#define _GNU_SOURCE
#include "tasks/names.h"
#include "rollback/rollback.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { OWN_SOCKET = 3 };

typedef struct {
    names_question question;
    int to;
} job;

/* A response while it is built. */
typedef struct {
    names_answer head;
    char bytes[NAMES_ANSWER_MAX];
} said;

static bool say(said *s, const void *from, size_t len) {
    if (len > sizeof s->bytes - s->head.bytes) {
        return false;
    }
    if (len > 0) {
        memcpy(s->bytes + s->head.bytes, from, len);
    }
    s->head.bytes += (uint32_t)len;
    return true;
}

/* ---- the functions ------------------------------------------------------------------------- */

static const char *host_of(const names_question *q) {
    return q->has_host ? q->text : NULL;
}

static const char *service_of(const names_question *q) {
    return q->has_service ? q->text + q->host_len : NULL;
}

static const char *address_of(const names_question *q) {
    return q->text + q->host_len + q->service_len;
}

static bool say_address(said *s, const struct addrinfo *one) {
    const char *name = one->ai_canonname;
    const names_address head = {
        .flags = one->ai_flags,
        .family = one->ai_family,
        .socktype = one->ai_socktype,
        .protocol = one->ai_protocol,
        .address_len = one->ai_addrlen,
        .name_len = name ? (uint32_t)strlen(name) + 1 : 0,
    };
    return say(s, &head, sizeof head) && say(s, one->ai_addr, head.address_len) &&
           say(s, name, head.name_len);
}

static void ask_addresses(const names_question *q, said *s) {
    struct addrinfo *all = NULL;
    s->head.result = getaddrinfo(host_of(q), service_of(q), q->has_hints ? &q->hints : NULL, &all);
    s->head.error = errno;
    if (s->head.result != 0) {
        return;
    }
    for (const struct addrinfo *one = all; one; one = one->ai_next) {
        if (!say_address(s, one)) {
            s->head = (names_answer){.result = EAI_MEMORY};
            break;
        }
    }
    freeaddrinfo(all);
}

static void ask_name(const names_question *q, said *s) {
    struct sockaddr_storage address;
    char host[NI_MAXHOST] = "", service[NI_MAXSERV] = "";
    if (q->address_len > sizeof address) {
        s->head.result = EAI_FAMILY;
        return;
    }
    memcpy(&address, address_of(q), q->address_len);
    s->head.result =
        getnameinfo((struct sockaddr *)&address, q->address_len, q->host_room ? host : NULL,
                    q->host_room ? sizeof host : 0, q->service_room ? service : NULL,
                    q->service_room ? sizeof service : 0, q->flags);
    s->head.error = errno;
    if (s->head.result == 0) {
        say(s, host, strlen(host) + 1);
        say(s, service, strlen(service) + 1);
    }
}

static bool say_host(said *s, const struct hostent *host) {
    names_host head = {.family = host->h_addrtype, .len = (uint32_t)host->h_length};
    while (host->h_addr_list[head.count]) {
        head.count++;
    }
    while (host->h_aliases[head.alias_count]) {
        head.alias_count++;
    }
    bool fits = say(s, &head, sizeof head) && say(s, host->h_name, strlen(host->h_name) + 1);
    for (uint32_t i = 0; fits && i < head.alias_count; i++) {
        fits = say(s, host->h_aliases[i], strlen(host->h_aliases[i]) + 1);
    }
    for (uint32_t i = 0; fits && i < head.count; i++) {
        fits = say(s, host->h_addr_list[i], head.len);
    }
    return fits;
}

static int look_up_host(const names_question *q, struct hostent *host, char *buffer, size_t room,
                        struct hostent **found, int *error) {
    switch (q->function) {
    case NAMES_GETHOSTBYNAME2:
        return gethostbyname2_r(q->text, q->family, host, buffer, room, found, error);
    case NAMES_GETHOSTBYADDR:
    case NAMES_GETHOSTBYADDR_R:
        return gethostbyaddr_r(address_of(q), q->address_len, q->family, host, buffer, room, found,
                               error);
    default:
        return gethostbyname_r(q->text, host, buffer, room, found, error);
    }
}

static void ask_host(const names_question *q, said *s) {
    struct hostent host, *found = NULL;
    char *buffer = malloc(NAMES_BUFFER_MAX);
    int error = NO_RECOVERY;
    if (buffer) {
        look_up_host(q, &host, buffer, NAMES_BUFFER_MAX, &found, &error);
    }
    s->head.error = errno;
    s->head.host_error = found ? 0 : error;
    s->head.result = found ? 0 : -1;
    if (found && !say_host(s, found)) {
        s->head = (names_answer){.result = -1, .host_error = NO_RECOVERY};
    }
    free(buffer);
}

static void ask_records(const names_question *q, said *s) {
    struct __res_state state = {0};
    const int room = q->dns_room < NAMES_BUFFER_MAX ? q->dns_room : NAMES_BUFFER_MAX;
    unsigned char *response = malloc((size_t)room + 1);
    if (!response || res_ninit(&state) != 0) {
        free(response);
        s->head = (names_answer){.result = -1, .error = ENOMEM, .host_error = NO_RECOVERY};
        return;
    }
    if (q->has_state) {
        state.options = q->options;
        state.retrans = q->retrans;
        state.retry = q->retry;
    }
    s->head.result = q->function == NAMES_RES_QUERY
                         ? res_nquery(&state, q->text, q->dns_class, q->dns_type, response, room)
                         : res_nsearch(&state, q->text, q->dns_class, q->dns_type, response, room);
    s->head.error = errno;
    s->head.host_error = state.res_h_errno;
    if (s->head.result > 0) {
        say(s, response, (size_t)(s->head.result < room ? s->head.result : room));
    }
    res_nclose(&state);
    free(response);
}

static void ask(const names_question *q, said *s) {
    errno = 0;
    switch (q->function) {
    case NAMES_GETADDRINFO:
        ask_addresses(q, s);
        break;
    case NAMES_GETNAMEINFO:
        ask_name(q, s);
        break;
    case NAMES_RES_NSEARCH:
    case NAMES_RES_QUERY:
        ask_records(q, s);
        break;
    default:
        ask_host(q, s);
    }
}

/* ---- the process --------------------------------------------------------------------------- */

static void respond(int to, const said *s) {
    const char *from = (const char *)s;
    size_t left = sizeof s->head + s->head.bytes;
    while (left > 0) {
        const ssize_t n = send(to, from, left, MSG_NOSIGNAL);
        if (n <= 0) {
            return; /* the query was cancelled */
        }
        from += n;
        left -= (size_t)n;
    }
}

static void *work(void *given) {
    job *j = given;
    said *s = calloc(1, sizeof *s);
    if (s) {
        ask(&j->question, s);
        respond(j->to, s);
    }
    close(j->to);
    free(s);
    free(j);
    return NULL;
}

/* If no thread can take the query, its descriptor is closed, which is a response, too. */
static void begin(const pthread_attr_t *attributes, job *j) {
    pthread_t thread;
    if (pthread_create(&thread, attributes, work, j) != 0) {
        close(j->to);
        free(j);
    }
}

/* Returns false if no process is left that could send a query. */
static bool receive(int socket, job *j) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {&j->question, sizeof j->question};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    const ssize_t n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *head = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!head || head->cmsg_type != SCM_RIGHTS) {
        return false;
    }
    memcpy(&j->to, CMSG_DATA(head), sizeof j->to);
    return true;
}

/* Closes all descriptors of the worker: a process that waits for their end would otherwise wait
 * for this process. */
static void hold_nothing_but(int socket) {
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; nothing >= 0 && fd < OWN_SOCKET; fd++) {
        syscall(SYS_dup3, nothing, fd, 0);
    }
    if (socket != OWN_SOCKET) {
        syscall(SYS_dup3, socket, OWN_SOCKET, O_CLOEXEC);
    }
    syscall(SYS_close_range, OWN_SOCKET + 1, ~0U, 0);
}

static _Noreturn void leave(void) {
    for (;;) {
        syscall(SYS_exit_group, 0);
    }
}

void samovar_names_serve(int socket, pid_t parent) {
    samovar_watcher = NULL;
    samovar_close_watcher = NULL;
    samovar_counts_turn = false;
    samovar_forked();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        leave();
    }
    hold_nothing_but(socket);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, NAMES_STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (job *j; (j = malloc(sizeof *j)) && receive(OWN_SOCKET, j);) {
        begin(&attributes, j);
    }
    leave();
}
