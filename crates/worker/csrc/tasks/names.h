/* Name lookups while tasks are in flight: the query of a task, and the response of the process
 * that makes it.
 *
 * libc makes its queries internally: they cannot be turned into waits, and a thread for them
 * would be one more part of a process that is rolled back. So a process is forked for the
 * queries, with one thread per query (resolver.c), and the task waits for its response
 * (names.c). The process lives as long as tasks are in flight. Both run the same program, so
 * messages have the form that they have in memory. */
#ifndef SAMOVAR_TASKS_NAMES_H
#define SAMOVAR_TASKS_NAMES_H

#include "tasks/calls.h"
#include <netdb.h>
#include <resolv.h>

enum {
    NAMES_TEXT_MAX = 3072,         /* a host, a service, an address */
    NAMES_ANSWER_MAX = 256 << 10,  /* response to one query */
    NAMES_QUESTIONS_MAX = 256,     /* in flight; more block the process, as without tasks */
    NAMES_STACK_BYTES = 512 << 10, /* of a thread for a query */
    NAMES_BUFFER_MAX = 64 << 10,   /* of libc's buffer for one host */
};

typedef struct {
    names_function function;
    bool has_host, has_service, has_hints;
    struct addrinfo hints; /* only its numbers */
    int family, flags;
    int dns_class, dns_type, dns_room;
    bool has_state; /* settings of the resolver, which PHP may have changed */
    unsigned long options;
    int retrans, retry;
    uint32_t host_room, service_room;
    uint32_t host_len, service_len; /* with their NUL */
    uint32_t address_len;
    char text[NAMES_TEXT_MAX]; /* host, service, address */
} names_question;

typedef struct {
    int32_t result, error, host_error;
    uint32_t bytes; /* that follow */
} names_answer;

/* An address of getaddrinfo(): followed by the socket address, and by the canonical name if it
 * has one. */
typedef struct {
    int32_t flags, family, socktype, protocol;
    uint32_t address_len, name_len;
} names_address;

/* A host: followed by the name, `alias_count` names, and `count` addresses of `len` bytes. */
typedef struct {
    int32_t family;
    uint32_t len, count, alias_count;
} names_host;

/* ---- names.c ------------------------------------------------------------------------------- */

long samovar_task_names(const blocking_call *call, task_wait *wait);
/* Ends the resolver process if no task is in flight any more, or (`at_once`) the request is
 * over. */
void samovar_names_end(bool at_once);
/* Called in a process that a request has forked: the resolver belongs to the parent. */
void samovar_names_forked(void);

/* ---- names_question.c ---------------------------------------------------------------------- */

/* Returns false if no query is needed, or if it cannot be passed on. */
bool samovar_names_put(names_question *q, const blocking_call *call);

/* ---- names_answer.c ------------------------------------------------------------------------ */

/* Returns the function's result for that response, whose `bytes` follow its head. */
long samovar_names_give(const blocking_call *call, const names_question *q,
                        const names_answer *head, const char *bytes);
/* Returns the function's result for a task that was cancelled; errno has the reason. */
long samovar_names_give_up(const blocking_call *call);

/* ---- resolver.c ---------------------------------------------------------------------------- */

/* Runs in the forked process: handles queries from `socket`, each with the descriptor for its
 * response, until no process is left that could send one. */
_Noreturn void samovar_names_serve(int socket, pid_t parent);

#endif
