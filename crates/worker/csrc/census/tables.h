/* The engine's tables: which classes, functions and files are there, settings, wrappers. */
#ifndef SAMOVAR_CENSUS_TABLES_H
#define SAMOVAR_CENSUS_TABLES_H

#include "census/walk.h"

/* What code has been declared and loaded. */
void samovar_census_code(census_walk *w);
/* ini settings, and those that the process or an extension keeps. */
void samovar_census_settings(census_walk *w);
/* Stream wrappers and filters, resources by type, memory. */
void samovar_census_holdings(census_walk *w);

#endif
