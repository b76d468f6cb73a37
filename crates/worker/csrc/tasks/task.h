/* Tasks: PHP code of one request that waits while other code of it continues.
 *
 * A task runs on its own fiber context. Code that waits in it (in a blocking call of libc, or in
 * a function of ours) switches to the driver: the code that is not a task. The driver runs the
 * ready tasks, then waits for all others with one poll(). There is one thread, and one piece of
 * code runs at a time: other code continues only where code waits.
 *
 *     new -> ready -> running -> waiting -> ready -> ... -> done
 *
 * scheduler.c holds the states and drives; context.c runs PHP on a task's stack and separates
 * the engine state that exists only once; watcher.c turns blocking calls into waits, with
 * calls.c, traffic.c, retries.c and names.c for kinds of them; sharing.c rejects two tasks on one
 * connection.
 *
 * While no task is in flight, no function of this folder is called, and samovar_watcher is
 * unchanged. */
#ifndef SAMOVAR_TASKS_TASK_H
#define SAMOVAR_TASKS_TASK_H

#include <php.h>
#include <zend_fibers.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    POLLED_MAX = 4096,              /* descriptors that all tasks together wait for */
    TASK_VM_STACK_BYTES = 16 << 10, /* the first page of a task's PHP stack */
    TASK_NAME_BYTES = 120
};

typedef enum { TASK_NEW, TASK_READY, TASK_RUNNING, TASK_WAITING, TASK_DONE } task_state;

typedef enum {
    WOKEN_NOT,
    WOKEN_READY,       /* a descriptor is ready, or it was notified */
    WOKEN_LATE,        /* its deadline has passed */
    WOKEN_CANCELLED,   /* it must end */
    WOKEN_INTERRUPTED, /* a signal, or an end that ends the driver, too */
    WOKEN_NEVER        /* nothing is left that could wake it */
} task_woken;

typedef struct samovar_task samovar_task;

/* One wait, on the stack of the code that waits. */
typedef struct task_wait {
    const struct pollfd *fds; /* NULL: for a notification or the deadline */
    uint32_t count;
    uint64_t deadline_ns; /* 0: none */
    bool is_call;         /* of libc: its time is charged */
    bool ends_others;     /* for cancelled tasks: a cancelled one may wait, too */
    const void *told;     /* subject of samovar_task_tell(); NULL: none */
    uint64_t slept_ns;    /* its share of the time that the process slept */
    uint32_t first;       /* index of its first descriptor among all */
    task_woken woken;
    samovar_task *task; /* NULL: the driver */
    struct task_wait *next, *previous;
} task_wait;

struct samovar_task {
    task_state state;
    bool is_cancelled;
    bool is_awaited; /* its result was delivered */
    bool exited, bailed_out;
    char name[TASK_NAME_BYTES];
    zend_fiber_context context;
    zend_fiber_context *at; /* where it continues: its own context, or a fiber's in it */
    zend_vm_stack vm_stack;
    int output_base; /* levels of output buffers that are not its own */
    task_wait *wait;
    zend_fcall_info call;
    zend_fcall_info_cache cache;
    zval result;
    zend_object *thrown;
    zend_object *unwinding;        /* exception that ends it, thrown where it was cancelled */
    zend_object *conflict;         /* its error about a connection that another task used */
    samovar_task *next, *previous; /* list of the tasks in flight */
    samovar_task *next_ready;
    zend_object std;
};

static inline samovar_task *samovar_task_of(zend_object *object) {
    return (samovar_task *)((char *)object - XtOffsetOf(samovar_task, std));
}

/* ---- scheduler.c --------------------------------------------------------------------------- */

/* Returns the task whose code runs, NULL if none. */
samovar_task *samovar_task_current(void);
/* Begins a task, which at once runs to its first wait. Returns false if an exception is thrown. */
bool samovar_task_begin(samovar_task *task);
/* Waits for a descriptor, a deadline or a notification. Throws an Error if code cannot be
 * suspended here, or if nothing is left that could wake it. For a call: allowed only if
 * samovar_task_may_leave(). */
task_woken samovar_task_wait(task_wait *wait);
/* Wakes all that wait for a notification about `about`. The end of a task is a notification
 * about samovar_task_ends. */
void samovar_task_tell(const void *about);
extern const char samovar_task_ends[1];
/* Ends the task as soon as it runs again. A connection that it waits for is shut down. */
void samovar_task_cancel(samovar_task *task);
/* Called at the end of a request, for any reason: ends all tasks. Not called on the stack of a
 * task. */
void samovar_tasks_end(void);
bool samovar_tasks_in_flight(void);
/* Called in a process that a request has forked: only the running task continues. */
void samovar_tasks_forked(void);
/* Called in MINIT: a cancelled task can then end while its code runs, too. */
void samovar_tasks_startup(void);
/* Returns true if `fds` more descriptors can be awaited. */
bool samovar_task_has_room(uint64_t fds);
/* Returns the list of waits. */
task_wait *samovar_task_waits(void);
/* Called when a connection is closed: wakes all that wait for it. */
void samovar_task_closed(int fd);

/* ---- calls.c ------------------------------------------------------------------------------- */

/* Returns true if code can be suspended here. */
bool samovar_task_may_leave(void);

/* ---- context.c ----------------------------------------------------------------------------- */

/* Returns false if an exception is thrown. */
bool samovar_task_context_make(samovar_task *task);
/* Continues there. Returns when another context switches back. */
void samovar_task_switch(zend_fiber_context *to, samovar_task *leaving);
/* Called at the end of a task's own code, in scheduler.c. Returns the context that continues. */
zend_fiber_context *samovar_task_finish(samovar_task *task);
/* Throws the exception that unwinds a cancelled task. Its `finally` blocks run, unless the
 * request is over. */
void samovar_task_unwind(samovar_task *task, bool is_over);
/* Returns true if that exception was thrown and still unwinds the task: it was not replaced by a
 * driver's exception that the task's code has caught. */
bool samovar_task_is_unwinding(const samovar_task *task);

#endif
