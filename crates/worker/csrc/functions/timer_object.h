/* The class Samovar\Timer, and what all timers of a request have in common. */
#ifndef SAMOVAR_FUNCTIONS_TIMER_OBJECT_H
#define SAMOVAR_FUNCTIONS_TIMER_OBJECT_H

/* In MINIT. */
void samovar_timer_object_startup(void);

/* PHP begins anew: of what a fatal error at the end of the request before has left, the memory is
 * gone. */
void samovar_measures_startup(void);
/* A request of a booted application begins: no timer, tag or name of before is its own. */
void samovar_measures_begin(void);
/* It ends: timers are stopped and told. */
void samovar_measures_end(void);

#endif
