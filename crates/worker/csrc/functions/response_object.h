/* Samovar\Response, and the other values that a handler may return. */
#ifndef SAMOVAR_FUNCTIONS_RESPONSE_OBJECT_H
#define SAMOVAR_FUNCTIONS_RESPONSE_OBJECT_H

#include <php.h>

/* Called in MINIT. */
void samovar_response_startup(void);
/* Writes the return value of a handler: nothing, a string, or a Samovar\Response. May throw. */
void samovar_deliver(zval *returned);

#endif
