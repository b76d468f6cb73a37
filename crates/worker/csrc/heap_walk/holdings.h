/* Detects growing numbers of descriptors, mapped files and children of a resident worker, and
 * names them in the log while it serves. */
#ifndef SAMOVAR_HEAP_WALK_HOLDINGS_H
#define SAMOVAR_HEAP_WALK_HOLDINGS_H

#include <stdbool.h>
#include <stdint.h>

enum { HOLDING_NAME = 256, HOLDING_PLACE = 320 };

/* A kind of resource that has grown. */
typedef struct {
    char name[HOLDING_NAME];
    char place[HOLDING_PLACE]; /* file:line that opened the last one, if known */
    const char *unit;          /* "descriptors", "mappings", "processes" */
    uint32_t grown;
    uint64_t requests;
} samovar_hoard;

typedef void samovar_tell_hoard(const samovar_hoard *found);

/* Called when serving begins. Resources held at this time belong to the application. */
void samovar_holdings_begin(void);
void samovar_holdings_end(void);
/* Called after each request. In most cases one comparison. */
void samovar_holdings_request(samovar_tell_hoard *tell);
/* Returns true if an idle worker has served enough requests for another check. */
bool samovar_holdings_wanted(void);
void samovar_holdings_idle(samovar_tell_hoard *tell);

#endif
