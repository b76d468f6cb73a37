/* Restores the state of a resident application's request to its value when serving began. */
#ifndef SAMOVAR_MODEL_RESET_H
#define SAMOVAR_MODEL_RESET_H

/* Called when serving begins. */
void samovar_reset_save(void);
/* Called after a request. */
void samovar_reset(void);
/* Called when serving ends. */
void samovar_reset_drop(void);
/* Has the shutdown functions registered at boot run, too, before the request's own. */
void samovar_reset_undo_shutdown_functions(void);
/* Makes samovar_reset_drop() restore the shutdown functions of the boot and of the request. */
void samovar_reset_keep_shutdown_functions(void);

#endif
