/* A request whose time is over, by the front's clock. */
#ifndef SAMOVAR_MODEL_OVERRUN_H
#define SAMOVAR_MODEL_OVERRUN_H

/* Once, when the extensions have started: the signal and the engine's hooks. */
void samovar_overrun_startup(void);

/* A request begins. */
void samovar_overrun_begin(void);

#endif
