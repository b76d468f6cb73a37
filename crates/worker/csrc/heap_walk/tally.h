/* Compares two heap walks of one process and finds the containers that have grown most. Keeps
 * only numbers of the previous walk. */
#ifndef SAMOVAR_HEAP_WALK_TALLY_H
#define SAMOVAR_HEAP_WALK_TALLY_H

#include "heap_walk/roots.h"

enum { GROWERS_MAX = 3, GROWER_NAME = 256 };

/* A container that has grown. */
typedef struct {
    char name[GROWER_NAME];
    const char *unit; /* "elements", "bytes", "objects" */
    uint32_t grown;
    uint64_t bytes; /* of all new values, approximately */
    const char *file;
    size_t file_len;
    uint32_t line, line_end;
    char kind;
} grower;

/* Counts all containers and returns those that have grown since the last call, the largest
 * growth first. The texts of the growers are valid until the next call. Returns their number; 0
 * at the first call. */
uint32_t samovar_tally(const heap_walk_waiting *waiting, grower *to);

#endif
