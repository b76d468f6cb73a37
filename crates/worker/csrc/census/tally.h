/* Two censuses of one process, of which only numbers are kept: which container has grown most. */
#ifndef SAMOVAR_CENSUS_TALLY_H
#define SAMOVAR_CENSUS_TALLY_H

#include "census/roots.h"

enum { GROWERS_MAX = 3, GROWER_NAME = 256 };

/* A container that has grown. */
typedef struct {
    char name[GROWER_NAME];
    const char *unit; /* "elements", "bytes", "objects" */
    uint32_t grown;
    uint64_t bytes; /* of all that came, about */
    const char *file;
    size_t file_len;
    uint32_t line, line_end;
    char kind;
} grower;

/* Counts all there is, and says what has grown since the last time, the greatest first. The texts
 * of the growers are valid until the next call. Returns their number; 0 the first time. */
uint32_t samovar_tally(const census_waiting *waiting, grower *to);

#endif
