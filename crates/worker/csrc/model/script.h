/* One script, run as one PHP request.
 *
 * This folder holds the execution models: they decide when PHP runs which code, and which state
 * is left between two requests. It includes from every folder below, and none of them includes
 * from it. dispatch.c decides which model a request or a boot takes. */
#ifndef SAMOVAR_MODEL_SCRIPT_H
#define SAMOVAR_MODEL_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

/* Called in MINIT. */
void samovar_script_startup(void);

/* Starts the PHP request. `is_boot`: it has no client. Returns false if PHP cannot start it. */
bool samovar_script_begin(bool is_boot);
/* Runs the script of a client's request. */
void samovar_script_run(const char *script);
/* Runs the script of a boot. Its code may continue with requests, and below a checkpoint it ends
 * once per request. */
void samovar_script_boot(const char *script);

/* SAMOVAR_RUN_*: result of the last run. */
extern int samovar_outcome;
/* Peak of the request's memory, taken before PHP resets it. */
extern size_t samovar_peak_bytes;

#endif
