/* What requests change of a process that does not roll back. */
#ifndef SAMOVAR_ROLLBACK_STAIN_H
#define SAMOVAR_ROLLBACK_STAIN_H

#include "leave.h"

/* Told by the interposed functions. Something that only a new process undoes was changed. */
void samovar_stain(leave_reason reason);
/* A timer was set, or taken away. */
void samovar_stain_timers(void);
/* Signals will be blocked: told before they are. */
void samovar_stain_mask(void);

/* A request begins. */
void samovar_stains_begin(void);
/* Requests begin: what the boot has changed is as it should be. */
void samovar_stains_begin_anew(void);

#endif
