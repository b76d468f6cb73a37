/* The SAPI module: what PHP asks of the server it runs in, for the request at hand.
 *
 * This folder is PHP's view of one request: log, headers, output, input, $_SERVER, .user.ini. It
 * knows no execution model. It includes from memory/, and from nothing above. */
#ifndef SAMOVAR_SAPI_SAPI_H
#define SAMOVAR_SAPI_SAPI_H

#include <php.h>
#include <SAPI.h>
#include <php_main.h>
#include <php_output.h>
#include <php_variables.h>
#include "boundary.h"

/* ---- where the process stands -------------------------------------------------------------- */

/* The request that is being run, NULL between requests and at boot. */
extern const samovar_head *samovar_current;
/* The client's answer is complete (fastcgi_finish_request, or the end of the request). */
extern bool samovar_answered;
/* SAMOVAR_RUNS_SCRIPTS and so on. */
extern int samovar_place;
/* The application is resident: from samovar_serving_begin() to samovar_serving_end(). */
extern bool samovar_serving;
/* The script is below its checkpoint: its end is a rollback. */
extern bool samovar_below_checkpoint;

/* The front controller is run ahead of its requests. */
static inline bool samovar_is_boot(void) {
    return samovar_place != SAMOVAR_RUNS_SCRIPTS && samovar_place != SAMOVAR_RUNS_CONSOLE;
}

/* What the server was told to do; set before PHP starts. */
extern const samovar_options *samovar_settings;

/* ---- the module ---------------------------------------------------------------------------- */

/* Before PHP starts: takes the settings; the module, with the name by which PHP code knows it. */
sapi_module_struct *samovar_sapi_prepare(const samovar_options *options);
/* In MINIT: opcache looks for a name that it knows, and is given one. */
void samovar_sapi_minit(void);
/* When PHP has started: its own name again. */
void samovar_sapi_started(void);

/* One line for the log. */
void samovar_note(const char *format, ...) ZEND_ATTRIBUTE_FORMAT(printf, 1, 2);
/* PHP's view of the request's head; no request any more. */
void samovar_fill_request_info(const samovar_head *r);
void samovar_forget_request_info(void);
/* The client's answer is complete now; false: it was before, or there is none. */
bool samovar_finish_answer(void);
/* Sends the headers set so far as an interim answer (1xx); false: it is too late, or too much. */
bool samovar_send_interim(int status);

/* ---- output of above the checkpoint -------------------------------------------------------- */

/* It is the beginning of every answer. */
void samovar_replay_early_output(void);
/* It has no reader: it goes to the log. */
void samovar_log_early_output(void);
void samovar_drop_early_output(void);

#endif
