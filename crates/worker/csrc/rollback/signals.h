/* Pending signals: signals that a request has blocked and not handled. */
#ifndef SAMOVAR_ROLLBACK_SIGNALS_H
#define SAMOVAR_ROLLBACK_SIGNALS_H

/* Called before signals are blocked. */
void samovar_signals_block(void);
/* Called at the end of a request, before PHP restores default dispositions. Drops pending signals
 * if the boot or the request has blocked any. */
void samovar_signals_end(void);
/* Drops all pending signals. */
void samovar_signals_drop(void);

#endif
