/* Pages that large requests write, and which requests are large.
 *
 * A page that is watched costs the request that writes it a fault, one that is hot costs each
 * rollback a copy. Where small requests and large ones take turns, neither is right: these pages
 * are watched for the small ones alone. What a request will be, its like have shown: requests of
 * one kind (model/kind.h). A wrong guess costs time and nothing else. */
#ifndef SAMOVAR_MEMORY_BULK_H
#define SAMOVAR_MEMORY_BULK_H

#include <stdbool.h>
#include <stdint.h>

enum {
    BULK_PAGES_MIN = 1024, /* that a large request writes */
    BULK_KINDS = 256       /* that are known; one more takes another's place */
};

/* A page that is copied back after each request. */
typedef struct {
    char *page;
    uint32_t number;    /* in the image */
    uint32_t unchanged; /* how often in a row a comparison found it so */
} hot_page;

typedef struct {
    uint32_t number;
    bool is_new, is_large;
    uint8_t trust; /* so often in a row as before */
} request_kind;

typedef struct {
    hot_page *list; /* watched but for requests that are expected to be large */
    uint32_t count;
    bool expected;      /* The request under way is. */
    request_kind *kind; /* its own; NULL: not told */
    request_kind kinds[BULK_KINDS];
} bulk_state;

bool samovar_bulk_start(bulk_state *b);
/* A request of this kind begins. True: it is expected to be large. */
bool samovar_bulk_begins(bulk_state *b, uint32_t number);
/* It has written so many pages that were not hot. */
void samovar_bulk_ends(bulk_state *b, uint32_t pages);
/* Whether requests of this kind are alike; as of its end. */
bool samovar_bulk_tells(const bulk_state *b);
/* False: there are enough. */
bool samovar_bulk_add(bulk_state *b, hot_page page);

#endif
