/* Reports the engine's tables: classes, functions, files, settings, wrappers. */
#ifndef SAMOVAR_HEAP_WALK_TABLES_H
#define SAMOVAR_HEAP_WALK_TABLES_H

#include "heap_walk/walk.h"

/* Reports declared classes and functions, and loaded files. */
void samovar_heap_walk_code(heap_walk_walk *w);
/* Reports the ini settings. */
void samovar_heap_walk_settings(heap_walk_walk *w);
/* Reports stream wrappers and filters, resources by type, and memory. */
void samovar_heap_walk_holdings(heap_walk_walk *w);

#endif
