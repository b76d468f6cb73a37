/* Reasons and ways for a worker to leave: its process ends after the response, and the
 * supervisor replaces it at once. In case of doubt the worker is replaced by a fresh fork; it
 * never runs a request in a doubtful process. */
#ifndef SAMOVAR_LEAVE_H
#define SAMOVAR_LEAVE_H

#include <stdbool.h>
#include "ring.h" /* leave_reason */

/* Ends this worker at once. Uses no memory that a rollback restores. */
_Noreturn void samovar_leave_for(leave_reason reason);
/* Leaves with `reason` if a step of the rollback has failed. */
void samovar_must(bool done, leave_reason reason);

#endif
