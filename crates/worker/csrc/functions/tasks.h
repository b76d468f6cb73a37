/* Samovar\parallel() and the related functions: tasks as PHP code sees them. */
#ifndef SAMOVAR_FUNCTIONS_TASKS_H
#define SAMOVAR_FUNCTIONS_TASKS_H

#include "tasks/task.h"

/* Called when PHP starts. */
void samovar_task_startup(void);
void samovar_channel_startup(void);
void samovar_pool_startup(void);

extern zend_class_entry *samovar_timeout_exception;

/* Returns the deadline of a wait of at most `seconds`. 0: there is no deadline. */
uint64_t samovar_deadline(bool is_given, double seconds);
/* Checks an argument after Z_PARAM_DOUBLE. Returns false if a ValueError is thrown. */
bool samovar_seconds_are_valid(uint32_t argument, double seconds);
/* Waits for a notification about `about`. Returns false if an exception is thrown; `late` is the
 * text of a TimeoutException. */
bool samovar_wait_for_word(const void *about, uint64_t deadline_ns, const char *late);
/* Creates a task; `name` is part of its description. */
samovar_task *samovar_task_new(zend_fcall_info *call, zend_fcall_info_cache *cache,
                               const char *name, size_t len);

#endif
