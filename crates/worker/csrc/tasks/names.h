/* Names while tasks are in flight: what a task asks, and what the process that looks it up says.
 *
 * libc asks for names inside itself: nothing of it can be made a wait, and a thread that asks would
 * be one more thing in a process that is rolled back. So a process is forked that asks, with as
 * many threads as there are questions (resolver.c), and the task waits for what it says (names.c).
 * It lives as long as tasks are in flight. Both are of one program: what they say to each other is
 * as it lies in memory. */
#ifndef SAMOVAR_TASKS_NAMES_H
#define SAMOVAR_TASKS_NAMES_H

#include "tasks/calls.h"
#include <netdb.h>
#include <resolv.h>

enum {
    NAMES_TEXT_MAX = 3072,         /* a host, a service, an address */
    NAMES_ANSWER_MAX = 256 << 10,  /* of one question */
    NAMES_QUESTIONS_MAX = 256,     /* at once; more block the process, as without tasks */
    NAMES_STACK_BYTES = 512 << 10, /* of a thread that asks */
    NAMES_BUFFER_MAX = 64 << 10,   /* of libc's, for one host */
};

typedef struct {
    names_function function;
    bool has_host, has_service, has_hints;
    struct addrinfo hints; /* Only its numbers. */
    int family, flags;
    int dns_class, dns_type, dns_room;
    bool has_state; /* Of the resolver: what PHP may have set. */
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

/* Of getaddrinfo(): each is followed by its address, and by the canonical name if it has one. */
typedef struct {
    int32_t flags, family, socktype, protocol;
    uint32_t address_len, name_len;
} names_address;

/* Of a host: followed by the name, `alias_count` names, and `count` addresses of `len` bytes. */
typedef struct {
    int32_t family;
    uint32_t len, count, alias_count;
} names_host;

/* ---- names.c ------------------------------------------------------------------------------- */

long samovar_task_names(const blocking_call *call, task_wait *wait);
/* No task is in flight any more, or (`at_once`) the request is over: so is the process that asks.
 */
void samovar_names_end(bool at_once);
/* In what a request has forked: it is another's. */
void samovar_names_forked(void);

/* ---- names_question.c ---------------------------------------------------------------------- */

/* False: nobody has to be asked, or it is no question that could be passed on. */
bool samovar_names_put(names_question *q, const blocking_call *call);

/* ---- names_answer.c ------------------------------------------------------------------------ */

/* What the function returns, after that answer; its `bytes` lie behind its head. */
long samovar_names_give(const blocking_call *call, const names_question *q,
                        const names_answer *head, const char *bytes);
/* What it returns when its task was cancelled; errno says why. */
long samovar_names_give_up(const blocking_call *call);

/* ---- resolver.c ---------------------------------------------------------------------------- */

/* In the forked process: answers what comes over `socket`, each with the descriptor that its answer
 * goes to, until nobody is left who could ask. */
_Noreturn void samovar_names_serve(int socket, pid_t parent);

#endif
