/* Tasks: PHP code of one request that waits while other code of it goes on.
 *
 * A task runs on a fiber context of its own. Who waits in it (a blocking call of libc, or a
 * function of ours) leaves to the driver: the code that is no task. The driver runs what is ready,
 * then waits for all of them by one poll(). There is one thread, and one piece of code runs at a
 * time: only where something waits do others go on.
 *
 *   new -> ready -> running -> waiting -> ready -> ... -> done
 *
 * scheduler.c knows who is in which state and drives; context.c runs PHP on a task's stack and
 * keeps apart what the engine has only one of; calls.c makes waits of blocking calls, with
 * traffic.c for bytes; sharing.c refuses two tasks on one connection.
 *
 * While no task is in flight nothing of this folder is called: samovar_watcher is as it was. */
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
    WOKEN_READY,       /* One of its descriptors is; or somebody has told it. */
    WOKEN_LATE,        /* Its deadline is over. */
    WOKEN_CANCELLED,   /* It is to end. */
    WOKEN_INTERRUPTED, /* A signal came, or something has ended that ends the driver too. */
    WOKEN_NEVER        /* Nobody is left who could wake it. */
} task_woken;

typedef struct samovar_task samovar_task;

/* One who waits, on the stack of that code. */
typedef struct task_wait {
    const struct pollfd *fds; /* NULL: it is told, or it is late. */
    uint32_t count;
    uint64_t deadline_ns; /* 0: none */
    bool is_call;         /* of libc: what it takes is charged */
    bool ends_others;     /* For tasks that were cancelled: a cancelled one waits, too. */
    const void *told;     /* Whom samovar_task_tell() speaks of; NULL: nobody. */
    uint64_t slept_ns;    /* Its share of the time that the process slept meanwhile. */
    uint32_t first;       /* of its descriptors among all */
    task_woken woken;
    samovar_task *task; /* NULL: the driver */
    struct task_wait *next, *previous;
} task_wait;

struct samovar_task {
    task_state state;
    bool is_cancelled;
    bool is_awaited; /* Somebody has been told how it ended. */
    bool exited, bailed_out;
    char name[TASK_NAME_BYTES];
    zend_fiber_context context;
    zend_fiber_context *at; /* where it goes on: its own, or that of a fiber in it */
    zend_vm_stack vm_stack;
    int output_base; /* levels of output buffers that are not its own */
    task_wait *wait;
    zend_fcall_info call;
    zend_fcall_info_cache cache;
    zval result;
    zend_object *thrown;
    zend_object *unwinding;        /* what ends it, thrown where it was cancelled */
    zend_object *conflict;         /* what it was told of a connection that another one used */
    samovar_task *next, *previous; /* of those in flight */
    samovar_task *next_ready;
    zend_object std;
};

static inline samovar_task *samovar_task_of(zend_object *object) {
    return (samovar_task *)((char *)object - XtOffsetOf(samovar_task, std));
}

/* ---- scheduler.c --------------------------------------------------------------------------- */

/* The task whose code runs; NULL: none. */
samovar_task *samovar_task_current(void);
/* Begins a task, which runs to its first wait at once. False: an exception is thrown. */
bool samovar_task_begin(samovar_task *task);
/* Waits, for a descriptor, a time or a word. Where code cannot be left, and where nobody is left
 * who could wake it, an Error is thrown. Of calls: only where samovar_task_may_leave(). */
task_woken samovar_task_wait(task_wait *wait);
/* Wakes all who wait for word of that. That a task has ended is word of samovar_task_ends. */
void samovar_task_tell(const void *about);
extern const char samovar_task_ends[1];
/* Ends it as soon as it runs again; a connection that it waits for is shut down. */
void samovar_task_cancel(samovar_task *task);
/* At the end of a request, whatever ended it: all tasks. On the stack of no task. */
void samovar_tasks_end(void);
bool samovar_tasks_in_flight(void);
/* In what a request has forked: only the task that runs goes on. */
void samovar_tasks_forked(void);
/* In MINIT: a cancelled task ends where its code runs, too. */
void samovar_tasks_startup(void);
/* Whether so many descriptors more can be waited for. */
bool samovar_task_has_room(uint64_t fds);
/* Those who wait. */
task_wait *samovar_task_waits(void);
/* A connection was closed: who waits for it is told. */
void samovar_task_closed(int fd);

/* ---- calls.c ------------------------------------------------------------------------------- */

/* Whether code may be left here for that of others. */
bool samovar_task_may_leave(void);

/* ---- context.c ----------------------------------------------------------------------------- */

/* False: an exception is thrown. */
bool samovar_task_context_make(samovar_task *task);
/* Goes on there; returns when somebody comes back. */
void samovar_task_switch(zend_fiber_context *to, samovar_task *leaving);
/* The end of a task's own code, in scheduler.c: where its context goes. */
zend_fiber_context *samovar_task_finish(samovar_task *task);
/* Throws what unwinds a cancelled task: its `finally` blocks run, unless the request is over. */
void samovar_task_unwind(samovar_task *task, bool is_over);
/* It is thrown, and still on its way: neither was it replaced by a driver's exception that the
 * task's code has caught. */
bool samovar_task_is_unwinding(const samovar_task *task);

#endif
