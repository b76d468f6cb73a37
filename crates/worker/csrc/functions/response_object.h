/* Samovar\Response, and what else a handler may return. */
#ifndef SAMOVAR_FUNCTIONS_RESPONSE_OBJECT_H
#define SAMOVAR_FUNCTIONS_RESPONSE_OBJECT_H

#include <php.h>

/* In MINIT. */
void samovar_response_startup(void);
/* Writes what a handler returned: nothing, a string, or a Samovar\Response. May throw. */
void samovar_deliver(zval *returned);

#endif
