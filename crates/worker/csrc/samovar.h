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
extern const char *samovar_app_script, *samovar_root;
/* PHP's heap may grow by this much before a resident worker rolls back, bytes. */
extern size_t samovar_growth_bytes_max;
/* Sends the headers set so far as an interim answer (1xx); false: it is too late, or too much. */
bool samovar_send_interim(int status);
/* Output of above the checkpoint is the beginning of every answer. */
void samovar_replay_early_output(void);
/* It has no reader: it goes to the log. */
void samovar_log_early_output(void);

/* variables.c */
void samovar_variables_startup(void);
void samovar_register_variables(zval *array);
char *samovar_getenv(const char *name, size_t len);
void samovar_request_headers(zval *array);
void samovar_fill_filter_input(void);

/* functions.c */
/* The client's answer is complete now; false: it was before, or there is none. */
bool samovar_finish_answer(void);
extern zend_module_entry samovar_module_entry;
void samovar_wrap_functions(void);
/* The filter extension has its copy of this request's $_SERVER. */
extern bool samovar_filter_input_filled;
/* A script called chdir() since this was last cleared. */
extern bool samovar_cwd_changed;
/* Handles of random engines that were made with a seed of their own; NULL: none. */
extern HashTable *samovar_seeded_engines;
/* Peak of the request's memory, taken before PHP resets it. */
extern size_t samovar_peak_bytes;

/* activate.c */
void samovar_activate_startup(void);
/* Begins a request of a booted application: for Samovar\serve(), and below a checkpoint. */
void samovar_activate(void);
void samovar_activate_below(void);
/* The session is closed, input filters and compression are forgotten. */
void samovar_deactivate_modules(void);
bool samovar_has_sessions(void);
/* Somebody else has touched the time limit's timer. */
void samovar_forget_time_limit(void);

/* reset.c */
void samovar_reset_save(void);
void samovar_reset(void);
void samovar_reset_drop(void);
/* Shutdown functions registered at boot run too, before the request's own. */
void samovar_reset_undo_shutdown_functions(void);
/* What samovar_reset_drop() restores are those of the boot and of the request. */
void samovar_reset_keep_shutdown_functions(void);
void samovar_reset_session(void);

/* resident.c */
ZEND_FUNCTION(Samovar_serve);
/* What answers requests. */
typedef struct {
    zend_fcall_info info;
    zend_fcall_info_cache cache;
    bool wants_request; /* It is given a Samovar\Request. */
    bool may_return;    /* What it returns is (part of) the answer. */
} samovar_handler;
/* The application is resident: from samovar_serving_begin() to samovar_serving_end(). */
extern bool samovar_serving;
/* Runs the warm-up requests and lets the image be taken; returns in each worker, and after each of
 * its rollbacks. The handler must live until serving ends. */
void samovar_serving_begin(samovar_handler *handler, zend_long rollback_every);
/* Waits for a request and serves it. False: the server stops, and serving has ended. After a fatal
 * error it has ended too, by a bailout. */
bool samovar_serve_next(samovar_handler *handler);
void samovar_serving_end(int outcome);
/* The script has ended by itself while it was serving. */
void samovar_script_ended(void);
/* Within samovar_serve_next(), but not waiting. */
bool samovar_dispatching(void);
/* Calls it for the request at hand, and reports what it throws. */
void samovar_call_handler(samovar_handler *handler);
/* SAMOVAR_RUN_*: how the last run ended. */
extern int samovar_outcome;

/* checkpoint.c */
ZEND_FUNCTION(Samovar_checkpoint);
ZEND_FUNCTION(Samovar_warmup);
void samovar_checkpoint(void);
/* SAMOVAR_RUNS_SCRIPTS and so on. */
extern int samovar_place;
/* The front controller is run ahead of its requests. */
static inline bool samovar_is_boot(void) {
    return samovar_place != SAMOVAR_RUNS_SCRIPTS && samovar_place != SAMOVAR_RUNS_CONSOLE;
}
/* The script is below its checkpoint: its end is a rollback. */
extern bool samovar_below_checkpoint;
/* Takes the image here; returns true in each worker, once and after each of its rollbacks. */
bool samovar_take_image(void);
/* Lets workers be forked here that never roll back; returns in each. */
void samovar_share_boot(void);
/* Ends the request as php-fpm would, and returns to the image. */
_Noreturn void samovar_end_below(void);

/* console.c */
/* While PHP compiles: PHP_SAPI may have another value in another process. */
void samovar_sapi_name_varies(void);
/* While constants are freed. */
void samovar_sapi_name_stays(void);

/* opcache.c */
/* While PHP's own request still has the time that it began with. */
void samovar_opcache_find(void);
/* Another request begins. */
void samovar_opcache_tick(void);

/* connections.c */
void samovar_connections_remember(void);
void samovar_connections_end_transactions(void);

/* frankenphp.c */
ZEND_FUNCTION(frankenphp_handle_request);
ZEND_FUNCTION(headers_send);
ZEND_FUNCTION(frankenphp_response_headers);
ZEND_FUNCTION(frankenphp_log);
void samovar_frankenphp_startup(int module_number);
/* The front controller is known to be a FrankenPHP worker script. */
extern bool samovar_frankenphp_worker;
/* A script that runs whole has had its one turn of frankenphp_handle_request(). */
extern bool samovar_frankenphp_handled;
/* How many requests such a script serves between two rollbacks, 0: it never rolls back. */
extern zend_long samovar_frankenphp_rollback_every;
/* Whether frankenphp_log() writes what is below FRANKENPHP_LOG_LEVEL_INFO. */
extern bool samovar_log_debug;

/* inclusion.c */
extern const char *samovar_checkpoint_after;
/* Around a boot: places the checkpoint after a file that the script includes. */
void samovar_watch_inclusions(void);
void samovar_unwatch_inclusions(void);

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
