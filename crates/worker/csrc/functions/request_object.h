/* Samovar\Request. */
#ifndef SAMOVAR_FUNCTIONS_REQUEST_OBJECT_H
#define SAMOVAR_FUNCTIONS_REQUEST_OBJECT_H

#include <php.h>

/* Called in MINIT. */
void samovar_request_startup(void);
/* Creates a Samovar\Request for the current request. */
zend_object *samovar_request_new(void);
/* Called at the end of the request: its objects return the defaults from now on. */
void samovar_request_expire(void);

#endif
