/* Which line of PHP called the functions that change what outlives a request: noted where censuses
 * are asked for, and nowhere else. */
#ifndef SAMOVAR_CENSUS_CALLS_H
#define SAMOVAR_CENSUS_CALLS_H

#include "census/walk.h"

/* Once, when PHP has started and no code is compiled yet. */
void samovar_calls_watch(void);
/* What a census itself asks is not noted. */
extern bool samovar_calls_pause;
/* The last line of each call with another first argument. */
void samovar_calls_tell(census_walk *w);

#endif
