/* Pages that large requests write, and the kinds of requests that are large.
 *
 * A watched page costs the request that writes it a fault. A hot page costs each rollback a
 * copy. If small and large requests alternate, neither is right: these pages are watched for the
 * small requests only. The size of a request is predicted from earlier requests of the same kind
 * (model/kind.h). A wrong prediction costs only time. */
#ifndef SAMOVAR_MEMORY_BULK_H
#define SAMOVAR_MEMORY_BULK_H

#include <stdbool.h>
#include <stdint.h>

enum {
    BULK_PAGES_MIN = 1024, /* minimum of pages written by a large request */
    BULK_KINDS = 256       /* known at the same time; a new one replaces another */
};

/* A page that is copied back after each request. */
typedef struct {
    char *page;
    uint32_t number;    /* in the image */
    uint32_t unchanged; /* comparisons in a row that found no change */
} hot_page;

typedef struct {
    uint32_t number;
    bool is_new, is_large;
    uint8_t trust; /* requests in a row that were as large as before */
} request_kind;

typedef struct {
    hot_page *list; /* watched, except for requests expected to be large */
    uint32_t count;
    bool expected;      /* the current request is expected to be large */
    request_kind *kind; /* of the current request; NULL: unknown */
    request_kind kinds[BULK_KINDS];
} bulk_state;

bool samovar_bulk_start(bulk_state *b);
/* Called when a request of this kind begins. Returns true if it is expected to be large. */
bool samovar_bulk_begins(bulk_state *b, uint32_t number);
/* Called when it has written `pages` pages that were not hot. */
void samovar_bulk_ends(bulk_state *b, uint32_t pages);
/* Returns true if requests of this kind are alike, including the one that has just ended. */
bool samovar_bulk_tells(const bulk_state *b);
/* Returns false if the list is full. */
bool samovar_bulk_add(bulk_state *b, hot_page page);

#endif
