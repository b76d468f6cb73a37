/* State of this process: the current request, the kind of the process, the settings. */
#ifndef SAMOVAR_SAPI_RUN_STATE_H
#define SAMOVAR_SAPI_RUN_STATE_H

#include "boundary.h"

/* The request that is being run; NULL between requests and at boot. */
extern const samovar_head *samovar_current;
/* True if the response to the client is complete (fastcgi_finish_request, or the end of the
 * request). */
extern bool samovar_responded;
/* True if the script has ended because its time is over. Its shutdown functions run then, in the
 * grace time. */
extern bool samovar_overrun_ended_script;
/* The kind of this process: SAMOVAR_RUNS_SCRIPTS and so on. */
extern int samovar_place;
/* True while the application is resident: from samovar_serving_begin() to samovar_serving_end(). */
extern bool samovar_serving;
/* True if the script is below its checkpoint: its end is a rollback. */
extern bool samovar_below_checkpoint;

/* Returns true if the front controller is run ahead of its requests. */
static inline bool samovar_is_boot(void) {
    return samovar_place != SAMOVAR_RUNS_SCRIPTS && samovar_place != SAMOVAR_RUNS_CONSOLE;
}

/* Settings of the server. Set before PHP starts. */
extern const samovar_options *samovar_settings;

#endif
