/* The resident model: an application that is booted once, and called for each request. */
#ifndef SAMOVAR_MODEL_RESIDENT_H
#define SAMOVAR_MODEL_RESIDENT_H

#include <php.h>

/* What answers requests. */
typedef struct {
    zend_fcall_info info;
    zend_fcall_info_cache cache;
    bool wants_request; /* It is given a Samovar\Request. */
    bool may_return;    /* What it returns is (part of) the answer. */
} samovar_handler;
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

#endif
