/* The class Samovar\Timer, and functions for all timers of a request. */
#ifndef SAMOVAR_FUNCTIONS_TIMER_OBJECT_H
#define SAMOVAR_FUNCTIONS_TIMER_OBJECT_H

/* Called in MINIT. */
void samovar_timer_object_startup(void);

/* Called when PHP begins a request. Forgets timers that a fatal error at the end of the previous
 * request has left, because their memory is gone. */
void samovar_measures_startup(void);
/* Called when a request of a booted application begins. Earlier timers, tags and names do not
 * belong to it. */
void samovar_measures_begin(void);
/* Called when the request ends. Stops and reports its timers. */
void samovar_measures_end(void);

#endif
