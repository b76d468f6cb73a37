/* Which pages of the image were written: the kernel's page tables say it. */
#ifndef SAMOVAR_MEMORY_SEARCH_H
#define SAMOVAR_MEMORY_SEARCH_H

#include "memory/image.h"

typedef struct {
    int pagemap;
    bool has_pagemap_scan;
    bool watches;                 /* Pages are watched (watch.h): they do not count as written. */
    bool mistrusts_faults;        /* There was a fault that made more than one page. */
    uint16_t order[CLUSTERS_MAX]; /* clusters, those that were written to last in front */
    uint32_t fresh;               /* pages of the search under way that its visitor did not know */
} search_state;

/* Whole pages of one region. */
typedef void page_visitor(void *argument, const image_region *r, char *from, const char *to);

/* Before a worker's descriptors are noted; false: the kernel does not give it. */
bool samovar_search_open(search_state *s);
/* When the image is there. */
void samovar_search_start(search_state *s);
/* All written pages. False: not all can be told. */
bool samovar_search_all(search_state *s, page_visitor *visit, void *argument);
/* Until `fresh_max` pages are found that the visitor counts in `fresh`. */
bool samovar_search(search_state *s, long fresh_max, page_visitor *visit, void *argument);
/* Shows [from, to) to `visit`, region by region; `at` is the first region that may be concerned. */
void samovar_visit_range(uint32_t at, uintptr_t from, uintptr_t to, page_visitor *visit,
                         void *argument);

/* Among all pages of the image. */
static inline size_t samovar_page_number(const image_region *r, const char *page) {
    return (r->offset + (size_t)(page - r->at)) / IMAGE_PAGE;
}

#endif
