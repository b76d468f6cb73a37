/* Database connections made above the checkpoint, as their drivers know them. */
#ifndef SAMOVAR_OUTSIDE_CONNECTIONS_H
#define SAMOVAR_OUTSIDE_CONNECTIONS_H

#include <php.h>

/* Returns the descriptor of a PHP stream, -1 if it has none. */
int samovar_connections_descriptor(php_stream *stream);
/* Called before the image is taken: records the existing connections. `treatment`: the setting
 * checkpoint_connections. */
void samovar_connections_remember(const char *treatment);
/* Returns true if a known driver uses the connection, and its protocol can be followed. */
bool samovar_connections_know(int fd);
/* From now on the connections of known drivers are followed in this worker. */
void samovar_connections_begin(void);
/* Called at the end of a request, in this order: rolls back open transactions; marks unchanged
 * connections, which may be kept. */
void samovar_connections_end_transactions(void);
void samovar_connections_settle(void);

#endif
