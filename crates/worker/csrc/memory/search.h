/* Finds the pages of the image that were written, in the kernel's page tables. */
#ifndef SAMOVAR_MEMORY_SEARCH_H
#define SAMOVAR_MEMORY_SEARCH_H

#include "memory/image.h"

typedef struct {
    int pagemap;
    bool has_pagemap_scan;
    bool watches;                 /* watched pages (watch.h) do not count as written */
    bool mistrusts_faults;        /* a fault has made more than one page */
    uint16_t order[CLUSTERS_MAX]; /* clusters, those written to last first */
    uint32_t fresh;               /* pages of this search that its visitor did not know */
} search_state;

/* Gets whole pages of one region. */
typedef void page_visitor(void *argument, const image_region *r, char *from, const char *to);

/* Called before a worker's descriptors are recorded. Returns false if the kernel refuses. */
bool samovar_search_open(search_state *s);
/* Called when there is an image. */
void samovar_search_start(search_state *s);
/* Visits all written pages. Returns false if not all of them could be found. */
bool samovar_search_all(search_state *s, page_visitor *visit, void *argument);
/* Visits written pages until there are `fresh_max` pages that the visitor counts in `fresh`. */
bool samovar_search(search_state *s, long fresh_max, page_visitor *visit, void *argument);
/* Passes [from, to) to `visit`, region by region. `at` is the first region that may overlap with
 * it. */
void samovar_visit_range(uint32_t at, uintptr_t from, uintptr_t to, page_visitor *visit,
                         void *argument);

/* Returns the number of a page among all pages of the image. */
static inline size_t samovar_page_number(const image_region *r, const char *page) {
    return (r->offset + (size_t)(page - r->at)) / IMAGE_PAGE;
}

#endif
