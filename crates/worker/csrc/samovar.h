/* What the C files of the worker share. Private to this directory. */
#ifndef SAMOVAR_H
#define SAMOVAR_H

#include <php.h>
#include <SAPI.h>
#include <php_main.h>
#include <php_output.h>
#include <php_variables.h>
#include "boundary.h"

/* The request that is being run, NULL between requests and at boot. */
extern const samovar_head *samovar_current;
/* The client's answer is complete (fastcgi_finish_request, or the end of the request). */
extern bool samovar_answered;

/* sapi.c */
void samovar_fill_request_info(const samovar_head *r);
void samovar_note(const char *format, ...) ZEND_ATTRIBUTE_FORMAT(printf, 1, 2);
extern const char *samovar_app_script;

/* variables.c */
void samovar_variables_startup(void);
void samovar_register_variables(zval *array);
char *samovar_getenv(const char *name, size_t len);
void samovar_request_headers(zval *array);
void samovar_fill_filter_input(void);

/* functions.c */
extern zend_module_entry samovar_module_entry;
void samovar_wrap_functions(void);
/* The filter extension has its copy of this request's $_SERVER. */
extern bool samovar_filter_input_filled;
/* A script called chdir() since this was last cleared. */
extern bool samovar_cwd_changed;
/* Peak of the request's memory, taken before PHP resets it. */
extern size_t samovar_peak_bytes;

/* resident.c */
ZEND_FUNCTION(Samovar_serve);
/* Samovar\serve() is taking requests. */
extern bool samovar_serving;
/* SAMOVAR_RUN_*: how the last run ended. */
extern int samovar_outcome;

/* request_object.c */
void samovar_request_startup(void);
/* A new Samovar\Request for the current request. */
zend_object *samovar_request_new(void);
/* The request is over: objects of it answer with their defaults from now on. */
void samovar_request_expire(void);

/* response_object.c */
void samovar_response_startup(void);
/* Writes what a handler returned: nothing, a string, or a Samovar\Response. May throw. */
void samovar_deliver(zval *returned);

/* user_ini.c */
void samovar_user_ini_activate(const char *root, size_t root_len, const char *script);

#endif
