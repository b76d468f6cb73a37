/* Requests whose time is over by the front's clock. */
#ifndef SAMOVAR_MODEL_OVERRUN_H
#define SAMOVAR_MODEL_OVERRUN_H

/* Called once, when the extensions have started: installs the signal handler and the engine's
 * hooks. */
void samovar_overrun_startup(void);

/* Called when a request begins. */
void samovar_overrun_begin(void);

#endif
