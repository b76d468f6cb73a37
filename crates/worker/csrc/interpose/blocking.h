/* The hook for blocking calls: each interposed function of libc that can make its caller wait
 * passes through here, and nowhere else.
 *
 * Without a watcher (the usual case outside a request, and in every thread but the first), the
 * call is made at once. The cost is one read of a thread-local pointer. With a watcher, the
 * watcher gets a description of the call and of the event that it would wait for. It makes the
 * call with samovar_make_call(): at once, with a clock read before and after, or later, when it
 * will not block. */
#ifndef SAMOVAR_INTERPOSE_BLOCKING_H
#define SAMOVAR_INTERPOSE_BLOCKING_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Event that a call waits for, with the meaning of `fd`, `what` and `count`. */
typedef enum {
    BLOCKS_READ,    /* bytes from `fd` */
    BLOCKS_WRITE,   /* room in `fd` */
    BLOCKS_CONNECT, /* the peer of `fd`: `count` bytes of an address at `what` */
    BLOCKS_ACCEPT,  /* a connection to `fd` */
    BLOCKS_POLL,    /* one of the `count` struct pollfd at `what` */
    BLOCKS_SELECT,  /* descriptors below `count`, in the fd_sets of `argument[1]` and [2] */
    BLOCKS_EPOLL,   /* an event of the epoll descriptor `fd` */
    BLOCKS_SLEEP,   /* time only */
    BLOCKS_LOCK,    /* a lock on the file of `fd` */
    BLOCKS_QUEUE,   /* a semaphore or message of System V */
    BLOCKS_NAMES,   /* a name service: `what` is the name or NULL, `count` the function */
    BLOCKS_CHILD,   /* the end of a child */
    BLOCKS_SIGNAL,  /* a signal */
    BLOCKS_DISK     /* the file of `fd` to be on its disk */
} blocks_on;

/* The function that looks up a name. The arguments are its own. */
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

/* Type by which any function can be called here. All arguments are integers or pointers; a
 * function ignores those it does not have. A shorter result must be cast. */
typedef long blocking_function(long, long, long, long, long, long, long, long);
enum { BLOCKING_ARGUMENTS = 8 };

typedef struct blocking_call blocking_call;

/* A call that has not been made yet. */
struct blocking_call {
    blocks_on on;
    int fd; /* -1: none */
    const void *what;
    size_t count;
    /* A function with its arguments. If it is NULL: the system call of that number. */
    blocking_function *function;
    long number;
    long argument[BLOCKING_ARGUMENTS];
};

/* Makes the call. Returns its result; errno is as libc leaves it. */
long samovar_make_call(const blocking_call *call);

/* The watcher of this thread: makes the call, returns its result, and preserves its errno. Set
 * for the duration of a request (insight/request_accounting.c), never in a process that a
 * request has forked. */
typedef long samovar_blocking_watcher(const blocking_call *call);
extern __thread samovar_blocking_watcher *samovar_watcher;

/* True if waits of the request release its worker's run permit (crates/ring/src/run_permits.rs), so
 * that another worker may run meanwhile. samovar_make_call() does that. Set and cleared with the
 * request. */
extern __thread bool samovar_counts_turn;

/* Called in this thread before a descriptor is closed. NULL: no function is called. */
extern __thread void (*samovar_close_watcher)(int fd);

/* Counts events that may put another file or peer at a descriptor's number, so that the peers of
 * descriptors can be cached. */
extern __thread uint32_t samovar_descriptor_changes;

#define SAMOVAR_ARGUMENT(value) ((long)(value))

/* Like libc's syscall(), but inline: libc's is a function call that moves each argument to
 * another register. */
static inline long samovar_system_call(long number, long a, long b, long c, long d, long e,
                                       long f) {
#ifdef __x86_64__
    /* Registers of the kernel for the fourth to the sixth argument. */
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

/* A system call that may block. It is a macro, so that the description is only made if there is
 * a watcher. All six arguments must be given. */
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

/* The same for a call that its descriptor describes completely. */
#define BLOCKING(on, fd, number, a, b, c, d, e, f)                                                 \
    BLOCKING_CALL(on, fd, NULL, 0, number, a, b, c, d, e, f)

/* The same for a function that is not a system call (`function`: libc's own), with up to eight
 * arguments. */
#define BLOCKING_FUNCTION(on_, what_, function_, ...)                                              \
    BLOCKING_FUNCTION_OF(on_, what_, 0, function_, __VA_ARGS__)

/* The same with a `count`. */
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
