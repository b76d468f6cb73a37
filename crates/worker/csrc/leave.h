/* Why and how a worker leaves: its process ends after the answer, and the supervisor replaces it at
 * once. A doubt is a fresh fork, never a request in a doubtful process. */
#ifndef SAMOVAR_LEAVE_H
#define SAMOVAR_LEAVE_H

#include <stdbool.h>
#include "ring.h" /* leave_reason */

/* Ends this worker at once. Uses no memory that a rollback puts back. */
_Noreturn void samovar_leave_for(leave_reason reason);
/* Leaves unless a step of the way back has worked. */
void samovar_must(bool done, leave_reason reason);

#endif
