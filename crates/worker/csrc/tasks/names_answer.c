/* Turns the response of the resolver process into the result that libc would have returned. */
#define _GNU_SOURCE
#include "tasks/names.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The unread rest of a response. Reads beyond its end fail. */
typedef struct {
    const char *at;
    size_t left;
} reading;

static const char *take(reading *r, size_t len) {
    if (len > r->left) {
        return NULL;
    }
    const char *at = r->at;
    r->at += len;
    r->left -= len;
    return at;
}

static const char *take_text(reading *r) {
    const size_t len = strnlen(r->at, r->left);
    return len < r->left ? take(r, len + 1) : NULL;
}

/* In the layout that glibc's freeaddrinfo() frees: the address follows its head, the name is
 * separate. */
static struct addrinfo *make_address(reading *r) {
    names_address head;
    const char *from = take(r, sizeof head);
    if (!from) {
        return NULL;
    }
    memcpy(&head, from, sizeof head);
    const char *address = take(r, head.address_len);
    const char *name = head.name_len ? take(r, head.name_len) : NULL;
    struct addrinfo *one =
        address && (name || !head.name_len) ? malloc(sizeof *one + head.address_len) : NULL;
    if (!one) {
        return NULL;
    }
    *one = (struct addrinfo){.ai_flags = head.flags,
                             .ai_family = head.family,
                             .ai_socktype = head.socktype,
                             .ai_protocol = head.protocol,
                             .ai_addrlen = head.address_len,
                             .ai_addr = (struct sockaddr *)(one + 1),
                             .ai_canonname = name ? strndup(name, head.name_len) : NULL};
    memcpy(one->ai_addr, address, head.address_len);
    return one;
}

static long give_addresses(const names_answer *head, reading *r, struct addrinfo **to) {
    struct addrinfo *first = NULL, **next = &first;
    if (head->result != 0) {
        return head->result;
    }
    while (r->left > 0) {
        if (!(*next = make_address(r))) {
            if (first) {
                freeaddrinfo(first);
            }
            return EAI_MEMORY;
        }
        next = &(*next)->ai_next;
    }
    *to = first;
    return first ? 0 : EAI_NONAME;
}

static bool give_text(const char *text, char *to, uint32_t room) {
    if (room == 0) {
        return true;
    }
    if (!text || strlen(text) >= room) {
        return false;
    }
    memcpy(to, text, strlen(text) + 1);
    return true;
}

static long give_name(const names_answer *head, reading *r, const names_question *q,
                      const long *a) {
    if (head->result != 0) {
        return head->result;
    }
    const char *host = take_text(r), *service = take_text(r);
    const bool fits = give_text(host, (char *)a[2], q->host_room) &&
                      give_text(service, (char *)a[4], q->service_room);
    return fits ? 0 : EAI_OVERFLOW;
}

typedef struct {
    char *at;
    size_t left;
} buffer;

static void *place(buffer *b, size_t len, size_t align) {
    const size_t skip = (align - (uintptr_t)b->at % align) % align;
    if (skip + len > b->left) {
        return NULL;
    }
    void *at = b->at + skip;
    b->at += skip + len;
    b->left -= skip + len;
    return at;
}

static char *place_text(buffer *b, const char *text) {
    char *to = text ? place(b, strlen(text) + 1, 1) : NULL;
    return to ? strcpy(to, text) : NULL;
}

/* Builds a host in `b`, as the functions with `_r` do. Returns false if there is no room. */
static bool make_host(reading *r, struct hostent *to, buffer *b) {
    names_host head;
    const char *from = take(r, sizeof head);
    if (!from) {
        return false;
    }
    memcpy(&head, from, sizeof head);
    const size_t count = (size_t)head.count + head.alias_count + 2;
    char **list = count < NAMES_ANSWER_MAX ? place(b, count * sizeof *list, sizeof *list) : NULL;
    if (!list) {
        return false;
    }
    *to = (struct hostent){.h_name = place_text(b, take_text(r)),
                           .h_addrtype = head.family,
                           .h_length = (int)head.len,
                           .h_aliases = list,
                           .h_addr_list = list + head.alias_count + 1};
    bool fits = to->h_name != NULL;
    for (uint32_t i = 0; fits && i < head.alias_count; i++) {
        fits = (to->h_aliases[i] = place_text(b, take_text(r))) != NULL;
    }
    for (uint32_t i = 0; fits && i < head.count; i++) {
        const char *address = take(r, head.len);
        char *at = address ? place(b, head.len, sizeof(void *)) : NULL;
        fits = at != NULL;
        to->h_addr_list[i] = fits ? memcpy(at, address, head.len) : NULL;
    }
    to->h_aliases[head.alias_count] = NULL;
    to->h_addr_list[head.count] = NULL;
    return fits;
}

/* gethostbyname() and related functions have one result at a time, as in libc. */
static long give_host(const names_answer *head, reading *r) {
    static struct hostent host;
    static char room[NAMES_BUFFER_MAX];
    buffer b = {room, sizeof room};
    h_errno = head->host_error;
    if (head->result == 0 && !make_host(r, &host, &b)) {
        h_errno = NO_RECOVERY;
        return 0;
    }
    return head->result == 0 ? SAMOVAR_ARGUMENT(&host) : 0;
}

static long give_host_r(const names_answer *head, reading *r, const long *a) {
    struct hostent *to = (struct hostent *)a[0], **result = (struct hostent **)a[3];
    buffer b = {(char *)a[1], (size_t)a[2]};
    *result = NULL;
    *(int *)a[4] = head->host_error;
    if (head->result != 0) {
        return head->error == ERANGE ? 0 : head->error;
    }
    if (!make_host(r, to, &b)) {
        *(int *)a[4] = NETDB_INTERNAL;
        return ERANGE;
    }
    *result = to;
    return 0;
}

static long give_records(const names_answer *head, reading *r, unsigned char *to, int room,
                         struct __res_state *state) {
    h_errno = head->host_error;
    if (state) {
        state->res_h_errno = head->host_error;
    }
    const size_t len = r->left < (size_t)room ? r->left : (size_t)room;
    memcpy(to, r->at, len);
    return head->result;
}

long samovar_names_give(const blocking_call *call, const names_question *q,
                        const names_answer *head, const char *bytes) {
    const long *a = call->argument;
    reading from = {bytes, head->bytes}, *r = &from;
    errno = head->error;
    switch (q->function) {
    case NAMES_GETADDRINFO:
        return give_addresses(head, r, (struct addrinfo **)a[3]);
    case NAMES_GETNAMEINFO:
        return give_name(head, r, q, a);
    case NAMES_GETHOSTBYNAME:
    case NAMES_GETHOSTBYNAME2:
    case NAMES_GETHOSTBYADDR:
        return give_host(head, r);
    case NAMES_GETHOSTBYNAME_R:
        return give_host_r(head, r, a + 1);
    case NAMES_GETHOSTBYADDR_R:
        return give_host_r(head, r, a + 3);
    case NAMES_RES_NSEARCH:
        return give_records(head, r, (unsigned char *)a[4], q->dns_room, (void *)a[0]);
    case NAMES_RES_QUERY:
        return give_records(head, r, (unsigned char *)a[3], q->dns_room, NULL);
    }
    return -1;
}

long samovar_names_give_up(const blocking_call *call) {
    const int error = errno;
    switch ((names_function)call->count) {
    case NAMES_GETADDRINFO:
    case NAMES_GETNAMEINFO:
        return EAI_SYSTEM;
    case NAMES_GETHOSTBYNAME_R:
        *(struct hostent **)call->argument[4] = NULL;
        *(int *)call->argument[5] = TRY_AGAIN;
        return error;
    case NAMES_GETHOSTBYADDR_R:
        *(struct hostent **)call->argument[6] = NULL;
        *(int *)call->argument[7] = TRY_AGAIN;
        return error;
    case NAMES_RES_NSEARCH:
        ((struct __res_state *)call->argument[0])->res_h_errno = TRY_AGAIN;
        h_errno = TRY_AGAIN;
        return -1;
    case NAMES_RES_QUERY:
        h_errno = TRY_AGAIN;
        return -1;
    default:
        h_errno = TRY_AGAIN;
        return 0;
    }
}
