/* opcache in booted processes: its idea of the time, and its lock. */
#ifndef SAMOVAR_SAPI_OPCACHE_H
#define SAMOVAR_SAPI_OPCACHE_H

/* While PHP's own request still has the time that it began with. */
void samovar_opcache_find(void);
/* Another request begins. */
void samovar_opcache_tick(void);
/* After a fatal error, which may have come while a script was stored. */
void samovar_opcache_unlock(void);

#endif
