/* Samovar\Request. */
#ifndef SAMOVAR_FUNCTIONS_REQUEST_OBJECT_H
#define SAMOVAR_FUNCTIONS_REQUEST_OBJECT_H

#include <php.h>

/* In MINIT. */
void samovar_request_startup(void);
/* A new Samovar\Request for the current request. */
zend_object *samovar_request_new(void);
/* The request is over: objects of it answer with their defaults from now on. */
void samovar_request_expire(void);

#endif
