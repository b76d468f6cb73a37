/* The sampling of PHP's allocations in a traced request. */
#ifndef SAMOVAR_GRAPH_ALLOCATIONS_H
#define SAMOVAR_GRAPH_ALLOCATIONS_H

/* Gives the heap its own functions back. PHP would not empty a heap that has others. */
void samovar_graph_allocations_end(void);

#endif
