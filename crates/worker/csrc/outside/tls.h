/* Encrypted connections of the process, as OpenSSL counts them. */
#ifndef SAMOVAR_OUTSIDE_TLS_H
#define SAMOVAR_OUTSIDE_TLS_H

/* When PHP has started, and before there is a connection: OpenSSL tells of each from here on. */
void samovar_tls_startup(void);
/* How many there are. */
long samovar_tls_live(void);

#endif
