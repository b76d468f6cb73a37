/* Kinds of blocking calls of libc, made while tasks are in flight: watcher.c selects one. */
#ifndef SAMOVAR_TASKS_CALLS_H
#define SAMOVAR_TASKS_CALLS_H

#include "interpose/blocking.h"
#include "tasks/task.h"
#include <sys/select.h>

enum { TASK_SELECTED_MAX = FD_SETSIZE }; /* descriptors of one select() */

/* Waits for the call's own descriptor. Returns false on failure, and sets errno. `late` is the
 * errno if the deadline of `wait` has passed. */
bool samovar_task_wait_for(task_wait *wait, int fd, short events, int late);
/* Returns the deadline of a socket's own limit (SO_RCVTIMEO, SO_SNDTIMEO). 0: it has none. */
uint64_t samovar_task_limit(int fd, int option);
/* Returns true if the descriptor returns EAGAIN instead of waiting. */
bool samovar_is_nonblocking(int fd);

/* Each returns the call's result, after a wait for its event. */
long samovar_task_polls(const blocking_call *call, task_wait *wait);
long samovar_task_selects(const blocking_call *call, task_wait *wait);
long samovar_task_epolls(const blocking_call *call, task_wait *wait);
long samovar_task_sleeps(const blocking_call *call, task_wait *wait);

/* ---- traffic.c ----------------------------------------------------------------------------- */

long samovar_task_reads(const blocking_call *call, task_wait *wait);
long samovar_task_writes(const blocking_call *call, task_wait *wait);
long samovar_task_connects(const blocking_call *call, task_wait *wait);

/* ---- retries.c ----------------------------------------------------------------------------- */

/* Locks, queues and children, which have no descriptor to wait for: they are checked again and
 * again, at most 20 ms apart. -2: this call can only block. */
enum { SAMOVAR_ONLY_BLOCKS = -2 };
long samovar_task_retries(const blocking_call *call, task_wait *wait);

#endif
