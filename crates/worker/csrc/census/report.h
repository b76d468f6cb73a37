/* A census as a file: one record per node, for the command that has asked for it. */
#ifndef SAMOVAR_CENSUS_REPORT_H
#define SAMOVAR_CENSUS_REPORT_H

#include "census/roots.h"

/* Censuses are asked for, by the settings. */
bool samovar_reports(void);
/* The process as it is before its first request. */
void samovar_report_begin(const census_waiting *waiting);
/* The process as the request at hand has left it: when its shutdown functions have run, before
 * anything is put back. After a fatal error only that there was one. */
void samovar_report_request(const census_waiting *waiting);

#endif
