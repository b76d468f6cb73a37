/* Ready and waiting tasks: the driver runs the ready ones, and waits for all others at once. */
#define _GNU_SOURCE
#include "tasks/task.h"
#include "sapi/sapi.h"
#include "boundary.h"
#include "insight/request_accounting.h"
#include "tasks/names.h"
#include "tasks/sharing.h"
#include "tasks/watcher.h"
#include <zend_exceptions.h>
#include <zend_signal.h>
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { KERNEL_SIGSET_BYTES = 8 };

const char samovar_task_ends[1];

static struct {
    samovar_task *current;
    samovar_task *in_flight;
    uint32_t count;
    uint64_t polled; /* descriptors that are awaited */
    samovar_task *ready, *last_ready;
    task_wait *waits, *last_wait;
    zend_fiber_context *driver;
    bool is_ending;
    bool is_over; /* exit() or a fatal error in a task: no `finally` of others runs. */
} scheduler;

samovar_task *samovar_task_current(void) {
    return scheduler.current;
}

bool samovar_tasks_in_flight(void) {
    return scheduler.in_flight != NULL;
}

task_wait *samovar_task_waits(void) {
    return scheduler.waits;
}

/* ---- lists --------------------------------------------------------------------------------- */

static void ready(samovar_task *task) {
    task->state = TASK_READY;
    task->next_ready = NULL;
    if (scheduler.last_ready) {
        scheduler.last_ready->next_ready = task;
    } else {
        scheduler.ready = task;
    }
    scheduler.last_ready = task;
}

static samovar_task *next_ready(void) {
    samovar_task *task = scheduler.ready;
    if (task) {
        scheduler.ready = task->next_ready;
        if (!scheduler.ready) {
            scheduler.last_ready = NULL;
        }
    }
    return task;
}

static void link_wait(task_wait *wait) {
    wait->next = NULL;
    wait->previous = scheduler.last_wait;
    *(wait->previous ? &wait->previous->next : &scheduler.waits) = wait;
    scheduler.last_wait = wait;
    scheduler.polled += wait->count;
}

static void unlink_wait(task_wait *wait) {
    *(wait->previous ? &wait->previous->next : &scheduler.waits) = wait->next;
    *(wait->next ? &wait->next->previous : &scheduler.last_wait) = wait->previous;
    scheduler.polled -= wait->count;
}

bool samovar_task_has_room(uint64_t fds) {
    return fds <= POLLED_MAX && scheduler.polled + fds <= POLLED_MAX;
}

static void wake(task_wait *wait, task_woken why) {
    if (wait->woken == WOKEN_NOT) {
        wait->woken = why;
        unlink_wait(wait);
        if (wait->task) {
            ready(wait->task);
        }
    }
}

void samovar_task_tell(const void *about) {
    for (task_wait *next, *wait = scheduler.waits; wait; wait = next) {
        next = wait->next;
        if (wait->told == about) {
            wake(wait, WOKEN_READY);
        }
    }
}

static bool waits_for(const task_wait *wait, int fd) {
    for (uint32_t i = 0; i < wait->count; i++) {
        if (wait->fds[i].fd == fd) {
            return true;
        }
    }
    return false;
}

void samovar_task_closed(int fd) {
    for (task_wait *next, *wait = scheduler.waits; wait; wait = next) {
        next = wait->next;
        if (waits_for(wait, fd)) {
            wake(wait, WOKEN_READY);
        }
    }
}

/* ---- in flight ----------------------------------------------------------------------------- */

static void fly(samovar_task *task) {
    task->previous = NULL;
    task->next = scheduler.in_flight;
    if (task->next) {
        task->next->previous = task;
    }
    scheduler.in_flight = task;
    if (scheduler.count++ == 0) {
        scheduler.is_over = false;
        samovar_watcher = samovar_task_call;
        samovar_close_watcher = samovar_task_closed;
    }
    GC_ADDREF(&task->std);
}

static void land(samovar_task *task) {
    task->state = TASK_DONE;
    *(task->previous ? &task->previous->next : &scheduler.in_flight) = task->next;
    if (task->next) {
        task->next->previous = task->previous;
    }
    if (--scheduler.count == 0) {
        samovar_watcher = samovar_request_accounting_now() ? samovar_waits_watch
                          : samovar_counts_turn            ? samovar_make_call
                                                           : NULL;
        samovar_close_watcher = NULL;
        samovar_names_end(false);
    }
    samovar_task_tell(samovar_task_ends);
}

zend_fiber_context *samovar_task_finish(samovar_task *task) {
    task->state = TASK_DONE;
    return scheduler.driver;
}

/* Removes the driver's waits: their stack goes, and their results have no reader. */
static void forget_driver(void) {
    for (task_wait *next, *wait = scheduler.waits; wait; wait = next) {
        next = wait->next;
        if (!wait->task) {
            unlink_wait(wait);
        }
    }
}

/* exit() in a task ends the request. */
static void exit_here(void) {
    scheduler.is_over = true;
    for (task_wait *next, *wait = scheduler.waits; wait; wait = next) {
        next = wait->next;
        if (!wait->task) {
            wake(wait, WOKEN_INTERRUPTED);
        }
    }
    if (!EG(exception)) {
        zend_throw_exception_internal(zend_create_unwind_exit());
    }
}

/* Called in the driver: runs the task's code until it waits or ends. */
static void resume(samovar_task *task) {
    scheduler.driver = EG(current_fiber_context);
    scheduler.current = task;
    task->state = TASK_RUNNING;
    samovar_task_switch(task->at, NULL);
    scheduler.current = NULL;
    if (task->state != TASK_DONE) {
        return;
    }
    const bool exited = task->exited, bailed_out = task->bailed_out;
    land(task);
    OBJ_RELEASE(&task->std);
    if (scheduler.is_ending) {
        return;
    }
    if (bailed_out) {
        scheduler.is_over = true;
        forget_driver();
        zend_bailout();
    }
    if (exited) {
        exit_here();
    }
}

static void unwind(samovar_task *task) {
    samovar_task_unwind(task, scheduler.is_over || CG(unclean_shutdown));
}

bool samovar_task_begin(samovar_task *task) {
    samovar_task *beginner = scheduler.current;
    if (scheduler.count >= samovar_settings->tasks_max) {
        zend_throw_error(NULL,
                         "The maximum of %zu tasks in flight is reached (limits.tasks_max); "
                         "hint: await some first",
                         samovar_settings->tasks_max);
        return false;
    }
    if (scheduler.is_ending || !samovar_task_may_leave() || (beginner && beginner->is_cancelled)) {
        zend_throw_error(NULL, "No task can begin here: in a destructor, an autoloader, an output "
                               "callback, or when the request or task is ending");
        return false;
    }
    if (!samovar_task_context_make(task)) {
        return false;
    }
    fly(task);
    if (!beginner) {
        resume(task);
        return !EG(exception);
    }
    ready(task);
    ready(beginner);
    beginner->at = EG(current_fiber_context);
    samovar_task_switch(scheduler.driver, beginner);
    if (beginner->is_cancelled) {
        unwind(beginner);
    }
    return !EG(exception);
}

/* ---- the driver ---------------------------------------------------------------------------- */

static void run_ready(const task_wait *own) {
    /* Runs the tasks that are ready now. Tasks that become ready meanwhile run after the next
     * poll. */
    samovar_task *last = scheduler.last_ready, *task = NULL;
    while (own->woken == WOKEN_NOT && task != last && (task = next_ready())) {
        resume(task);
    }
}

static struct pollfd polled[POLLED_MAX];

typedef struct {
    uint32_t fds, calls;
    uint64_t deadline_ns;
} all_waits;

static all_waits collect(void) {
    all_waits all = {0};
    for (task_wait *wait = scheduler.waits; wait; wait = wait->next) {
        wait->first = all.fds;
        for (uint32_t i = 0; i < wait->count && all.fds < POLLED_MAX; i++) {
            polled[all.fds++] = wait->fds[i];
        }
        all.calls += wait->is_call;
        if (wait->deadline_ns && (!all.deadline_ns || wait->deadline_ns < all.deadline_ns)) {
            all.deadline_ns = wait->deadline_ns;
        }
    }
    return all;
}

static bool is_ready(const task_wait *wait) {
    for (uint32_t i = 0; i < wait->count; i++) {
        if (wait->first + i < POLLED_MAX && polled[wait->first + i].revents) {
            return true;
        }
    }
    return false;
}

/* Divides the time that the process slept among the calls that waited, so that their sum does
 * not exceed the time of the request. */
static void share(uint64_t slept_ns, uint32_t calls) {
    for (task_wait *wait = scheduler.waits; wait && calls; wait = wait->next) {
        if (wait->is_call) {
            wait->slept_ns += slept_ns / calls;
        }
    }
}

static void wake_all(int found, uint64_t now) {
    for (task_wait *next, *wait = scheduler.waits; wait; wait = next) {
        next = wait->next;
        if (found > 0 && is_ready(wait)) {
            wake(wait, WOKEN_READY);
        } else if (wait->deadline_ns && wait->deadline_ns <= now) {
            wake(wait, WOKEN_LATE);
        }
    }
}

/* Handles an interrupt as the engine does between two opcodes, because PHP code has called this
 * function. */
static void take_interrupt(task_wait *own) {
    if (!zend_atomic_bool_load_ex(&EG(vm_interrupt))) {
        return;
    }
    zend_atomic_bool_store_ex(&EG(vm_interrupt), false);
    unlink_wait(own); /* This may not return. */
    if (zend_atomic_bool_load_ex(&EG(timed_out))) {
        zend_timeout();
    } else if (zend_interrupt_function) {
        zend_interrupt_function(EG(current_execute_data));
    }
    link_wait(own);
    if (EG(exception)) {
        wake(own, WOKEN_INTERRUPTED);
    }
}

/* Polls all descriptors. A process that sleeps lets other workers run meanwhile. */
static int poll_all(size_t fds, const struct timespec *limit, bool may_sleep) {
    if (!may_sleep) {
        return (int)syscall(SYS_ppoll, polled, fds, limit, NULL, KERNEL_SIGSET_BYTES);
    }
    const blocking_call call = {
        .on = BLOCKS_POLL,
        .fd = -1,
        .what = polled,
        .count = fds,
        .number = SYS_ppoll,
        .argument = {(long)polled, (long)fds, (long)limit, 0, KERNEL_SIGSET_BYTES},
    };
    return (int)samovar_make_call(&call);
}

static void sleep_for_all(task_wait *own) {
    const all_waits all = collect();
    const bool may_sleep = !scheduler.ready;
    if (may_sleep && all.fds == 0 && all.deadline_ns == 0) {
        wake(own, WOKEN_NEVER);
        return;
    }
    const uint64_t from = samovar_now_ns();
    const uint64_t left = all.deadline_ns > from ? all.deadline_ns - from : 0;
    struct timespec limit = {.tv_sec = 0};
    if (may_sleep && all.deadline_ns) {
        limit = (struct timespec){.tv_sec = (time_t)(left / 1000000000),
                                  .tv_nsec = (long)(left % 1000000000)};
    }
    const bool is_endless = may_sleep && !all.deadline_ns;
    const int found = poll_all(all.fds, is_endless ? NULL : &limit, may_sleep);
    const bool is_interrupted = found < 0 && errno == EINTR;
    const uint64_t now = samovar_now_ns();
    if (may_sleep) {
        share(now - from, all.calls);
    }
    if (is_interrupted && own->is_call) {
        wake(own, WOKEN_INTERRUPTED);
    } else if (!own->is_call) {
        take_interrupt(own);
    }
    wake_all(found, now);
}

static void drive(task_wait *own) {
    link_wait(own);
    while (own->woken == WOKEN_NOT) {
        run_ready(own);
        if (own->woken == WOKEN_NOT) {
            sleep_for_all(own);
        }
    }
}

/* ---- waiting ------------------------------------------------------------------------------- */

static bool is_refused(const task_wait *wait) {
    const samovar_task *task = scheduler.current;
    if (wait->is_call) {
        return false;
    }
    if (!samovar_task_may_leave()) {
        zend_throw_error(NULL,
                         "Cannot wait here: in a destructor, an autoloader or an output callback");
        return true;
    }
    if (task && task->is_cancelled && !wait->ends_others && samovar_task_is_unwinding(task)) {
        zend_throw_error(NULL, "A cancelled task cannot wait for others");
        return true;
    }
    return false;
}

task_woken samovar_task_wait(task_wait *wait) {
    samovar_task *task = scheduler.current;
    wait->task = task;
    wait->woken = WOKEN_NOT;
    if (is_refused(wait)) {
        return WOKEN_NEVER;
    }
    if (!task) {
        drive(wait);
    } else if (!task->is_cancelled || wait->ends_others) {
        link_wait(wait);
        task->wait = wait;
        task->state = TASK_WAITING;
        task->at = EG(current_fiber_context);
        samovar_task_switch(scheduler.driver, task);
        task->wait = NULL;
    }
    if (task && task->is_cancelled && !wait->ends_others) {
        wait->woken = WOKEN_CANCELLED;
        unwind(task);
    }
    if (wait->woken == WOKEN_NEVER && !wait->is_call) {
        zend_throw_error(NULL, "All tasks wait for each other: a deadlock");
    }
    return wait->woken;
}

/* Ends a cancelled task whose code continues, between two opcodes. */
static void (*next_hook)(zend_execute_data *);

static void hook(zend_execute_data *frame) {
    samovar_task *task = scheduler.current;
    if (task && task->is_cancelled) {
        unwind(task);
    }
    if (next_hook && !(task && EG(exception))) {
        next_hook(frame);
    }
}

void samovar_tasks_startup(void) {
    next_hook = zend_interrupt_function;
    zend_interrupt_function = hook;
}

/* ---- ends ---------------------------------------------------------------------------------- */

/* A response without a reader would be taken as the response to the next query. */
static void cut(const task_wait *wait) {
    if (wait && wait->is_call && wait->count == 1) {
        samovar_task_cut(wait->fds[0].fd);
    }
}

void samovar_task_cancel(samovar_task *task) {
    if (task->state == TASK_DONE || task->is_cancelled) {
        return;
    }
    task->is_cancelled = true;
    if (task == scheduler.current) {
        unwind(task);
        return;
    }
    cut(task->wait);
    if (task->state == TASK_WAITING) {
        wake(task->wait, WOKEN_CANCELLED);
    }
}

void samovar_tasks_end(void) {
    if (scheduler.current) {
        return;
    }
    if (!scheduler.in_flight) {
        samovar_names_end(true);
        return;
    }
    scheduler.is_ending = true;
    forget_driver();
    scheduler.ready = scheduler.last_ready = NULL;
    while (scheduler.in_flight) {
        samovar_task *task = scheduler.in_flight;
        samovar_task_cancel(task);
        resume(task);
        if (task == scheduler.in_flight) {
            samovar_note("PHP Samovar: the task %s could not be ended", task->name);
            land(task); /* Its stack stays: nothing could free it. */
        }
    }
    scheduler.ready = scheduler.last_ready = NULL;
    scheduler.is_ending = scheduler.is_over = false;
    samovar_names_end(true);
}

void samovar_tasks_forked(void) {
    samovar_names_forked();
    for (samovar_task *next, *task = scheduler.in_flight; task; task = next) {
        next = task->next;
        if (task != scheduler.current) {
            task->is_cancelled = true;
            land(task);
        }
    }
    scheduler.ready = scheduler.last_ready = NULL;
    for (task_wait *next, *wait = scheduler.waits; wait; wait = next) {
        next = wait->next;
        if (wait->task) {
            unlink_wait(wait);
        }
    }
}
