/* Blocking calls while tasks are in flight: each becomes a wait, and is made when it will not
 * block. Calls that cannot be awaited block the process, as without tasks: disks, signals,
 * record locks. */
#define _GNU_SOURCE
#include "tasks/watcher.h"
#include "insight/peer.h"
#include "insight/request_accounting.h"
#include "tasks/calls.h"
#include "tasks/names.h"
#include "tasks/sharing.h"
#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>

/* True during a name lookup: calls of libc's modules for it pass here, too. */
static bool in_names;

static long without_tasks(const blocking_call *call) {
    const bool was_in_names = in_names;
    in_names |= call->on == BLOCKS_NAMES;
    const long result =
        samovar_request_accounting_now() ? samovar_waits_watch(call) : samovar_make_call(call);
    in_names = was_in_names;
    return result;
}

static bool is_time(const struct timespec *t) {
    return t && t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < 1000000000;
}

static bool is_valid(const blocking_call *call) {
    switch (call->on) {
    case BLOCKS_POLL:
        return (call->count > 0 || call->argument[2]) && samovar_task_has_room(call->count);
    case BLOCKS_SELECT:
        return call->count <= TASK_SELECTED_MAX && (call->count > 0 || call->argument[4]) &&
               samovar_task_has_room(call->count);
    case BLOCKS_SLEEP:
        return is_time(
            (const struct timespec *)call->argument[call->number == SYS_nanosleep ? 0 : 2]);
    default:
        return samovar_task_has_room(1);
    }
}

/* While a cancelled task ends (`finally`), it makes its calls as if there were no other tasks. */
static bool is_on_its_way_out(void) {
    const samovar_task *task = samovar_task_current();
    return task && task->is_cancelled && !EG(exception) && samovar_task_is_unwinding(task);
}

static bool uses_anothers(const blocking_call *call) {
    switch (call->on) {
    case BLOCKS_READ:
    case BLOCKS_WRITE:
    case BLOCKS_CONNECT:
        return samovar_task_shares(call->fd);
    case BLOCKS_POLL:
        for (size_t i = 0; i < call->count; i++) {
            if (samovar_task_shares(((const struct pollfd *)call->what)[i].fd)) {
                return true;
            }
        }
        return false;
    default:
        return false;
    }
}

static long wait_and_make(const blocking_call *call, task_wait *wait) {
    switch (call->on) {
    case BLOCKS_READ:
    case BLOCKS_ACCEPT:
        return samovar_task_reads(call, wait);
    case BLOCKS_WRITE:
        return samovar_task_writes(call, wait);
    case BLOCKS_CONNECT:
        return samovar_task_connects(call, wait);
    case BLOCKS_POLL:
        return samovar_task_polls(call, wait);
    case BLOCKS_SELECT:
        return samovar_task_selects(call, wait);
    case BLOCKS_EPOLL:
        return samovar_task_epolls(call, wait);
    case BLOCKS_SLEEP:
        return samovar_task_sleeps(call, wait);
    case BLOCKS_LOCK:
    case BLOCKS_QUEUE:
    case BLOCKS_CHILD:
        return samovar_task_retries(call, wait);
    case BLOCKS_NAMES:
        return samovar_task_names(call, wait);
    default:
        return SAMOVAR_ONLY_BLOCKS;
    }
}

long samovar_task_call(const blocking_call *call) {
    const int before = errno;
    if (in_names || !samovar_task_may_leave() || is_on_its_way_out() || !is_valid(call)) {
        return without_tasks(call);
    }
    if (uses_anothers(call)) {
        errno = EBUSY;
        return -1;
    }
    errno = before;
    task_wait wait = {.is_call = true};
    const int only = call->on == BLOCKS_SELECT ? samovar_selected_alone(call) : -1;
    const long result = wait_and_make(call, &wait);
    if (result == SAMOVAR_ONLY_BLOCKS) {
        return without_tasks(call);
    }
    samovar_waits_charge(call, result, only, wait.slept_ns);
    return result;
}
