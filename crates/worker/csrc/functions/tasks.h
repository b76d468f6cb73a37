/* Samovar\parallel() and its like: tasks as PHP code has them. */
#ifndef SAMOVAR_FUNCTIONS_TASKS_H
#define SAMOVAR_FUNCTIONS_TASKS_H

#include "tasks/task.h"

/* When PHP starts. */
void samovar_task_startup(void);
void samovar_channel_startup(void);
void samovar_pool_startup(void);

extern zend_class_entry *samovar_timeout_exception;

/* The end of a wait that takes so many seconds at most; 0: it may take for ever. */
uint64_t samovar_deadline(bool is_given, double seconds);
/* Of an argument, after Z_PARAM_DOUBLE; false: a ValueError is thrown. */
bool samovar_seconds_are_valid(uint32_t argument, double seconds);
/* Waits for word of `about`; false: an exception is thrown, `late` the text of a TimeoutException.
 */
bool samovar_wait_for_word(const void *about, uint64_t deadline_ns, const char *late);
/* A task of ours: `name` of what it is. */
samovar_task *samovar_task_new(zend_fcall_info *call, zend_fcall_info_cache *cache,
                               const char *name, size_t len);

#endif
