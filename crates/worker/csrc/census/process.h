/* What a process keeps beside PHP's values: settings of the process and of extensions. */
#ifndef SAMOVAR_CENSUS_PROCESS_H
#define SAMOVAR_CENSUS_PROCESS_H

#include "census/walk.h"

/* Asked by functions of PHP, by libc and by the kernel. */
void samovar_census_process(census_walk *w);

#endif
