/* State of PHP's modules that functions set, such as the time zone. A resident request's changes
 * are undone at its end. */
#ifndef SAMOVAR_FUNCTIONS_ENGINE_SETTINGS_H
#define SAMOVAR_FUNCTIONS_ENGINE_SETTINGS_H

/* Called when PHP has started: hooks the functions. */
void samovar_engine_settings_startup(void);
/* Called when serving begins. */
void samovar_engine_settings_save(void);
/* Called after a request: restores the values that it has changed. */
void samovar_engine_settings_restore(void);
/* Called when serving ends. */
void samovar_engine_settings_drop(void);

#endif
