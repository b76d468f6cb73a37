/* $_SERVER, getenv() and other data made from the request's head. */
#ifndef SAMOVAR_SAPI_VARIABLES_H
#define SAMOVAR_SAPI_VARIABLES_H

#include <php.h>

/* Called in MINIT, because strings that are interned later live for one request only. */
void samovar_variables_startup(void);
void samovar_register_variables(zval *array);
char *samovar_getenv(const char *name, size_t len);
/* The value of a variable that the server has added to the current request, such as TRACEPARENT;
 * NULL: there is none. */
const char *samovar_request_variable(const char *name, size_t name_len, size_t *len);
/* For getallheaders(): names in the form "Content-Type". */
void samovar_request_headers(zval *array);
/* The value of a variable of the process's environment in $_SERVER; NULL: there is none. */
const zend_string *samovar_environment_value(const zend_string *key);
/* Number of entries that will be added to $_SERVER once it is filled. */
extern uint32_t samovar_server_entries_added;
/* Fills the filter extension's copy of this request's $_SERVER. */
void samovar_fill_filter_input(void);

#endif
