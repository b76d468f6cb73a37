/* opcache in booted processes: its current time, and its lock. */
#ifndef SAMOVAR_SAPI_OPCACHE_H
#define SAMOVAR_SAPI_OPCACHE_H

/* Called while PHP's own request still has the time at which it began. */
void samovar_opcache_find(void);
/* Called when another request begins. */
void samovar_opcache_tick(void);
/* Called after a fatal error, which may have happened while a script was stored. */
void samovar_opcache_unlock(void);

#endif
