/* The SAPI module: the functions with which PHP uses its server, for the current request.
 *
 * This folder is PHP's view of one request: log, headers, output, input, $_SERVER, .user.ini. It
 * does not depend on execution models. It includes from memory/, and from nothing above. */
#ifndef SAMOVAR_SAPI_SAPI_H
#define SAMOVAR_SAPI_SAPI_H

#include <php.h>
#include <SAPI.h>
#include <php_main.h>
#include <php_output.h>
#include <php_variables.h>
#include "sapi/run_state.h"

/* ---- the module ---------------------------------------------------------------------------- */

/* Called before PHP starts: keeps the settings. Returns the module, with the name by which PHP
 * code knows it. */
sapi_module_struct *samovar_sapi_prepare(const samovar_options *options);
/* Called in MINIT: gives opcache a name that it knows. */
void samovar_sapi_minit(void);
/* Called when PHP has started: restores its own name. */
void samovar_sapi_started(void);

/* Logs one line. */
void samovar_note(const char *format, ...) ZEND_ATTRIBUTE_FORMAT(printf, 1, 2);
/* Sets PHP's view of the request's head; clears it when there is no request. */
void samovar_fill_request_info(const samovar_head *r);
void samovar_forget_request_info(void);
/* Completes the response to the client. Returns false if it was already complete, or there is
 * none. */
bool samovar_finish_response(void);
/* Sends the headers set so far as an interim response (1xx). Returns false if it is too late or
 * too much. */
bool samovar_send_interim(int status);

/* ---- output from above the checkpoint ------------------------------------------------------ */

/* Writes the early output at the beginning of every response. */
void samovar_replay_early_output(void);
/* Writes the early output to the log, because it has no reader. */
void samovar_log_early_output(void);
void samovar_drop_early_output(void);

#endif
