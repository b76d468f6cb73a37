/* The seam of what may block: each interposed function of libc that can make its caller wait
 * passes through here, and nowhere else.
 *
 * Nobody asks (the usual case outside a request, and in every thread but the first): the call is
 * made at once; a read of a thread-local pointer is all it costs. Somebody asks: he is given the
 * call, as a description of what it would wait for, and makes it by samovar_make_call(): at once,
 * with a clock on both sides, or later, when it will not block. */
#ifndef SAMOVAR_INTERPOSE_BLOCKING_H
#define SAMOVAR_INTERPOSE_BLOCKING_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What a call waits for, and what `fd`, `what` and `count` say of it. */
typedef enum {
    BLOCKS_READ,    /* bytes from `fd` */
    BLOCKS_WRITE,   /* room in `fd` */
    BLOCKS_CONNECT, /* the other end of `fd`: `count` bytes of an address at `what` */
    BLOCKS_ACCEPT,  /* a connection to `fd` */
    BLOCKS_POLL,    /* one of the `count` struct pollfd at `what` */
    BLOCKS_SELECT,  /* descriptors below `count`, in the fd_sets of `argument[1]` and [2] */
    BLOCKS_EPOLL,   /* what was told to the epoll descriptor `fd` */
    BLOCKS_SLEEP,   /* time alone */
    BLOCKS_LOCK,    /* a lock on the file of `fd` */
    BLOCKS_QUEUE,   /* a semaphore or message of System V */
    BLOCKS_NAMES,   /* whoever knows names: `what` is the name, or NULL; `count` is the function */
    BLOCKS_CHILD,   /* the end of a child */
    BLOCKS_SIGNAL,  /* a signal */
    BLOCKS_DISK     /* that the file of `fd` lies on its disk */
} blocks_on;

/* Which of them asks for names: its arguments are the function's own. */
typedef enum {
    NAMES_GETADDRINFO,
    NAMES_GETNAMEINFO,
    NAMES_GETHOSTBYNAME,
    NAMES_GETHOSTBYNAME2,
    NAMES_GETHOSTBYADDR,
    NAMES_GETHOSTBYNAME_R,
    NAMES_GETHOSTBYADDR_R,
    NAMES_RES_NSEARCH,
    NAMES_RES_QUERY
} names_function;

/* As any function that is called here can be called: all arguments are integers or pointers, and
 * those that it has not are not looked at. A result that is shorter is to be cast. */
typedef long blocking_function(long, long, long, long, long, long, long, long);
enum { BLOCKING_ARGUMENTS = 8 };

typedef struct blocking_call blocking_call;

/* A call that has not been made yet. */
struct blocking_call {
    blocks_on on;
    int fd; /* -1: none */
    const void *what;
    size_t count;
    /* A function with its arguments; or, where it is NULL, the system call of that number. */
    blocking_function *function;
    long number;
    long argument[BLOCKING_ARGUMENTS];
};

/* Makes the call; its result, and errno as libc leaves it. */
long samovar_make_call(const blocking_call *call);

/* Who asks, in this thread: makes the call, returns its result, and leaves its errno alone. Set for
 * the length of a request (insight/ledger.c), never in a process that a request has forked. */
typedef long samovar_blocking_watcher(const blocking_call *call);
extern __thread samovar_blocking_watcher *samovar_watcher;

/* Whether the request's waits end its worker's turn (crates/ring/src/turns.rs), so that another may
 * run meanwhile: samovar_make_call() sees to it. Opened and closed with the request. */
extern __thread bool samovar_counts_turn;

/* Who is told, in this thread, before a descriptor is closed; NULL: nobody. */
extern __thread void (*samovar_close_watcher)(int fd);

/* Counts what may put another file or peer behind a descriptor's number, so that who asks may
 * remember what is there. */
extern __thread uint32_t samovar_descriptor_changes;

#define SAMOVAR_ARGUMENT(value) ((long)(value))

/* As libc's syscall(), in place: that is called, and moves each argument to another register. */
static inline long samovar_system_call(long number, long a, long b, long c, long d, long e,
                                       long f) {
#ifdef __x86_64__
    /* The kernel's place for the fourth to the sixth. */
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = e;
    register long sixth __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    enum { ERRNO_MAX = 4095 };
    if (__builtin_expect((unsigned long)result >= (unsigned long)-ERRNO_MAX, 0)) {
        errno = (int)-result;
        return -1;
    }
    return result;
#else
    return syscall(number, a, b, c, d, e, f);
#endif
}

/* A system call that may block. In a macro, so that the description is only made if somebody asks.
 * All six arguments are given. */
#define BLOCKING_CALL(on_, fd_, what_, count_, number_, a, b, c, d, e, f)                          \
    (__builtin_expect(!samovar_watcher, 1)                                                         \
         ? samovar_system_call(number_, SAMOVAR_ARGUMENT(a), SAMOVAR_ARGUMENT(b),                  \
                               SAMOVAR_ARGUMENT(c), SAMOVAR_ARGUMENT(d), SAMOVAR_ARGUMENT(e),      \
                               SAMOVAR_ARGUMENT(f))                                                \
         : samovar_watcher(&(blocking_call){                                                       \
               .on = on_,                                                                          \
               .fd = fd_,                                                                          \
               .what = what_,                                                                      \
               .count = count_,                                                                    \
               .number = number_,                                                                  \
               .argument = {SAMOVAR_ARGUMENT(a), SAMOVAR_ARGUMENT(b), SAMOVAR_ARGUMENT(c),         \
                            SAMOVAR_ARGUMENT(d), SAMOVAR_ARGUMENT(e), SAMOVAR_ARGUMENT(f)}}))

/* The same for what one descriptor says all of. */
#define BLOCKING(on, fd, number, a, b, c, d, e, f)                                                 \
    BLOCKING_CALL(on, fd, NULL, 0, number, a, b, c, d, e, f)

/* The same for a function that is no system call (`function`: libc's own), with up to eight
 * arguments. */
#define BLOCKING_FUNCTION(on_, what_, function_, ...)                                              \
    BLOCKING_FUNCTION_OF(on_, what_, 0, function_, __VA_ARGS__)

/* The same, with what `count` says. */
#define BLOCKING_FUNCTION_OF(on_, what_, count_, function_, ...)                                   \
    samovar_call_blocking(&(blocking_call){.on = on_,                                              \
                                           .fd = -1,                                               \
                                           .what = what_,                                          \
                                           .count = count_,                                        \
                                           .function = (blocking_function *)(function_),           \
                                           .argument = {__VA_ARGS__}})

static inline long samovar_call_blocking(const blocking_call *call) {
    return samovar_watcher ? samovar_watcher(call) : samovar_make_call(call);
}

#endif
