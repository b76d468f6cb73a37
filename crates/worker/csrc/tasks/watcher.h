/* The watcher of blocking calls while tasks are in flight. */
#ifndef SAMOVAR_TASKS_WATCHER_H
#define SAMOVAR_TASKS_WATCHER_H

#include "interpose/blocking.h"

/* Set as samovar_watcher (interpose/blocking.h) while tasks are in flight. */
samovar_blocking_watcher samovar_task_call;

#endif
