/* One connection, one task at a time. */
#ifndef SAMOVAR_TASKS_SHARING_H
#define SAMOVAR_TASKS_SHARING_H

#include <stdbool.h>

/* Whether another task waits for an answer on that connection. Then an Error is thrown, and nobody
 * uses the connection any more. */
bool samovar_task_shares(int fd);
/* Nobody will read what comes: both ends are told so. */
void samovar_task_cut(int fd);

#endif
