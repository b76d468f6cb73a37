/* What belongs to a resident application's request, back to what it was when serving began. */
#ifndef SAMOVAR_MODEL_RESET_H
#define SAMOVAR_MODEL_RESET_H

/* When serving begins. */
void samovar_reset_save(void);
/* After a request. */
void samovar_reset(void);
/* When serving ends. */
void samovar_reset_drop(void);
/* Shutdown functions registered at boot run too, before the request's own. */
void samovar_reset_undo_shutdown_functions(void);
/* What samovar_reset_drop() restores are those of the boot and of the request. */
void samovar_reset_keep_shutdown_functions(void);
/* The boot's session handlers, which each request's end forgets. */
void samovar_reset_session(void);

#endif
