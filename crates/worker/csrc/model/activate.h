/* A request of a booted application begins. */
#ifndef SAMOVAR_MODEL_ACTIVATE_H
#define SAMOVAR_MODEL_ACTIVATE_H

#include <stdbool.h>

/* Once, before the first of them. */
void samovar_activate_startup(void);
/* Begins a request of a booted application: for Samovar\serve(), and below a checkpoint. */
void samovar_activate(void);
void samovar_activate_below(void);
/* The session is closed, input filters and compression are forgotten. */
void samovar_deactivate_modules(void);
bool samovar_has_sessions(void);

#endif
