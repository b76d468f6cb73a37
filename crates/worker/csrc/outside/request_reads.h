/* Reads of request data by the boot, which has no request: recorded with the line of PHP, and
 * reported as findings. */
#ifndef SAMOVAR_OUTSIDE_REQUEST_READS_H
#define SAMOVAR_OUTSIDE_REQUEST_READS_H

#include <stdbool.h>
#include <stddef.h>

/* Called in MINIT, before any script is compiled. */
void samovar_request_reads_startup(void);
/* Starts and stops recording. `allowed`: lines of the setting boot_reads, whose reads are
 * intended. */
void samovar_request_reads_begin(const char *allowed);
void samovar_request_reads_end(void);
/* While true, reads are not recorded: Samovar\warmup() has an artificial request. */
extern bool samovar_request_reads_pause;
/* Records getenv() of a name. */
void samovar_request_reads_getenv(const char *name, size_t len);
/* Reports the reads that were recorded. */
void samovar_request_reads_report(void);

#endif
