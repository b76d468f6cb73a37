/* Blocking calls of libc, made while tasks are in flight. */
#ifndef SAMOVAR_TASKS_CALLS_H
#define SAMOVAR_TASKS_CALLS_H

#include "interpose/blocking.h"
#include "tasks/task.h"

/* Who asks of blocking calls (interpose/blocking.h). */
samovar_blocking_watcher samovar_task_call;

/* Waits for the call's own descriptor; false: errno says why not. `late` is the errno of one that
 * waited until `wait`'s deadline. */
bool samovar_task_wait_for(task_wait *wait, int fd, short events, int late);
/* When a socket's own limit (SO_RCVTIMEO, SO_SNDTIMEO) is over; 0: it has none. */
uint64_t samovar_task_limit(int fd, int option);
/* It says EAGAIN rather than wait. */
bool samovar_is_nonblocking(int fd);

/* ---- traffic.c ----------------------------------------------------------------------------- */

long samovar_task_reads(const blocking_call *call, task_wait *wait);
long samovar_task_writes(const blocking_call *call, task_wait *wait);
long samovar_task_connects(const blocking_call *call, task_wait *wait);

/* ---- retries.c ----------------------------------------------------------------------------- */

/* Locks, queues and children, for which no descriptor can be waited for: looked for again and
 * again, at most 20 ms apart. -2: this one can only block. */
enum { SAMOVAR_ONLY_BLOCKS = -2 };
long samovar_task_retries(const blocking_call *call, task_wait *wait);

#endif
