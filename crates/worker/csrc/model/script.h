/* One run of a script, and the boot of an application (samovar_php_run() and samovar_php_boot()
 * of boundary.h).
 *
 * This folder holds the execution models: they decide when PHP runs which code, and which state
 * is left between two requests. It includes from every folder below (memory, outside, rollback,
 * interpose, sapi, functions); none of them includes from it. */
#ifndef SAMOVAR_MODEL_SCRIPT_H
#define SAMOVAR_MODEL_SCRIPT_H

#include <stddef.h>

/* Called in MINIT. */
void samovar_script_startup(void);

/* SAMOVAR_RUN_*: result of the last run. */
extern int samovar_outcome;
/* Peak of the request's memory, taken before PHP resets it. */
extern size_t samovar_peak_bytes;

#endif
