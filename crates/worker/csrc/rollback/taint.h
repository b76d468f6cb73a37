/* Taint: changes by requests to a process that does not roll back. */
#ifndef SAMOVAR_ROLLBACK_TAINT_H
#define SAMOVAR_ROLLBACK_TAINT_H

#include "leave.h"

/* Called by the interposed functions for a change that only a new process undoes. */
void samovar_taint(leave_reason reason);
/* Called when a timer was set or removed. */
void samovar_taint_timers(void);
/* Called before signals are blocked or unblocked. */
void samovar_taint_mask(bool unblocks);
/* Called when the request's code has ended, before its signal handlers are gone: an alarm would
 * end the process. */
void samovar_taint_end_timers(void);

/* Called when a request begins. */
void samovar_taints_begin(void);
/* Called when requests begin: changes by the boot are intended. */
void samovar_taints_restart(void);

#endif
