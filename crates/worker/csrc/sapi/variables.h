/* $_SERVER, getenv() and what else is made of the request's head. */
#ifndef SAMOVAR_SAPI_VARIABLES_H
#define SAMOVAR_SAPI_VARIABLES_H

#include <php.h>

/* In MINIT: strings that are interned later live for one request only. */
void samovar_variables_startup(void);
void samovar_register_variables(zval *array);
char *samovar_getenv(const char *name, size_t len);
/* For getallheaders(): names as "Content-Type". */
void samovar_request_headers(zval *array);
/* The filter extension's copy of this request's $_SERVER. */
void samovar_fill_filter_input(void);

#endif
