/* The resident model: an application that is booted once, and called for each request. */
#ifndef SAMOVAR_MODEL_RESIDENT_H
#define SAMOVAR_MODEL_RESIDENT_H

#include <php.h>

/* The handler of requests. */
typedef struct {
    zend_fcall_info info;
    zend_fcall_info_cache cache;
    bool wants_request; /* it gets a Samovar\Request */
    bool may_return;    /* its return value is (part of) the response */
} samovar_handler;
/* Runs the warm-up requests and lets the image be taken. Returns in each worker, and after each
 * of its rollbacks. The handler must live until serving ends. */
void samovar_serving_begin(samovar_handler *handler, zend_long rollback_every);
/* Waits for a request and serves it. Returns false if the server stops; serving has then ended.
 * A fatal error also ends serving, with a bailout. */
bool samovar_serve_next(samovar_handler *handler);
void samovar_serving_end(int outcome);
/* Called when the script has ended on its own while it was serving. */
void samovar_script_ended(void);
/* True within samovar_serve_next(), but not while it waits. */
bool samovar_dispatching(void);
/* Calls the handler for the current request, and reports an exception that it throws. */
void samovar_call_handler(samovar_handler *handler);

#endif
