/* Encrypted connections of the process, as OpenSSL counts them. */
#ifndef SAMOVAR_OUTSIDE_TLS_H
#define SAMOVAR_OUTSIDE_TLS_H

/* Called when PHP has started, and before there is a connection: OpenSSL reports each session
 * from here on. */
void samovar_tls_startup(void);
/* Returns the number of sessions. */
long samovar_tls_live(void);

#endif
