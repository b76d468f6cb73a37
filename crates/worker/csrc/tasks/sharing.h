/* One connection, one task at a time. */
#ifndef SAMOVAR_TASKS_SHARING_H
#define SAMOVAR_TASKS_SHARING_H

#include <stdbool.h>

/* Returns true if another task waits for a response on that connection. Then an Error is thrown,
 * and the connection is no longer used. */
bool samovar_task_shares(int fd);
/* Shuts the connection down, because incoming data has no reader. Both ends are notified. */
void samovar_task_cut(int fd);

#endif
