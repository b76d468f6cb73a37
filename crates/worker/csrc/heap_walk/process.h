/* State of a process apart from PHP's values: settings of the process and of extensions. */
#ifndef SAMOVAR_HEAP_WALK_PROCESS_H
#define SAMOVAR_HEAP_WALK_PROCESS_H

#include "heap_walk/walk.h"

/* Queries them with functions of PHP, from libc and from the kernel. */
void samovar_heap_walk_process(heap_walk_walk *w);

#endif
