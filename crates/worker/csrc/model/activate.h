/* The start of a request of a booted application. */
#ifndef SAMOVAR_MODEL_ACTIVATE_H
#define SAMOVAR_MODEL_ACTIVATE_H

#include <stdbool.h>

/* Called once, before the first of them. */
void samovar_activate_startup(void);
/* Begins a request of a booted application: for Samovar\serve(), and below a checkpoint. */
void samovar_activate(void);
void samovar_activate_below(void);
/* Closes the session, and forgets input filters and compression. */
void samovar_deactivate_modules(void);

#endif
