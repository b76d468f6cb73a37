/* Database connections made above the checkpoint, as their drivers know them. */
#ifndef SAMOVAR_OUTSIDE_CONNECTIONS_H
#define SAMOVAR_OUTSIDE_CONNECTIONS_H

#include <php.h>

/* Of a PHP stream; -1: it has none. */
int samovar_connections_descriptor(php_stream *stream);
/* Before the image: which there are. */
void samovar_connections_remember(void);
/* A driver is known that speaks on it, and its bytes can be read along. */
bool samovar_connections_know(int fd);
/* Those of known drivers are read along in this worker. */
void samovar_connections_begin(void);
/* At the end of a request, in this order: open transactions are rolled back; those that are as they
 * were may be kept. */
void samovar_connections_end_transactions(void);
void samovar_connections_settle(void);

#endif
