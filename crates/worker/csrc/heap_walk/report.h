/* Writes a heap walk to a file: one record per node, for the command that has requested it. */
#ifndef SAMOVAR_HEAP_WALK_REPORT_H
#define SAMOVAR_HEAP_WALK_REPORT_H

#include "heap_walk/roots.h"

/* Returns true if the settings request heap walks. */
bool samovar_reports(void);
/* Writes the state of the process before its first request. */
void samovar_report_begin(const heap_walk_waiting *waiting);
/* Writes the state of the process that the current request has left: after its shutdown
 * functions, before anything is restored. After a fatal error it records only that there was
 * one. */
void samovar_report_request(const heap_walk_waiting *waiting);

#endif
