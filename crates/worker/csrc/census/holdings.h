/* Descriptors, mapped files and children of a resident worker that become more and more, named in
 * the log while it serves. */
#ifndef SAMOVAR_CENSUS_HOLDINGS_H
#define SAMOVAR_CENSUS_HOLDINGS_H

#include <stdbool.h>
#include <stdint.h>

enum { HOLDING_NAME = 256, HOLDING_PLACE = 320 };

/* What has become more. */
typedef struct {
    char name[HOLDING_NAME];
    char place[HOLDING_PLACE]; /* file:line that opened the last one, as far as that is known */
    const char *unit;          /* "descriptors", "mappings", "processes" */
    uint32_t grown;
    uint64_t requests;
} samovar_hoard;

typedef void samovar_tell_hoard(const samovar_hoard *found);

/* Serving begins: what is held now is the application's. */
void samovar_holdings_begin(void);
void samovar_holdings_end(void);
/* Behind each request. Mostly one comparison. */
void samovar_holdings_request(samovar_tell_hoard *tell);
/* Whether a worker with nothing else to do has served enough to look again. */
bool samovar_holdings_wanted(void);
void samovar_holdings_idle(samovar_tell_hoard *tell);

#endif
