/* Calls that the kernel refuses, for the rest of the process's life. */
#ifndef SAMOVAR_INTERPOSE_REFUSED_CALLS_H
#define SAMOVAR_INTERPOSE_REFUSED_CALLS_H

#include <stdbool.h>

/* Makes the kernel refuse new processes, programs, messages in queues and io_uring with EACCES.
 * Threads are allowed. The process must end after its request. Returns false if the kernel cannot
 * do it. Further calls have no effect. */
bool samovar_refuse_calls(void);

#endif
