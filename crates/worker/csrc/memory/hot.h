/* Which pages of the image requests write, and their way back. */
#ifndef SAMOVAR_MEMORY_HOT_H
#define SAMOVAR_MEMORY_HOT_H

#include "memory/image.h"
#include "memory/watch.h"

/* A page that is copied back after each request. */
typedef struct {
    char *page;
    uint32_t number;    /* in the image */
    uint32_t unchanged; /* how often in a row a comparison found it so */
} hot_page;

/* What is known of a page of the image. */
typedef struct {
    uint8_t state, patience;
    /* Or since when it is watched, or when it was written last: rollback, by its last bits. */
    uint16_t dropped_at;
} page_note;

typedef struct {
    hot_page *hot;
    uint32_t count;
    hot_page *once; /* copied back this time, and watched then */
    uint32_t once_count;
    watch_state watch;
    page_note *pages;     /* by page of the image */
    const char **sources; /* by page of the image: its content, here or in the worker's own part */
    uint16_t order[CLUSTERS_MAX]; /* clusters, those that were written to last in front */
    const char *baseline;         /* the worker's own part */
    uint64_t rollback;            /* the number of the one under way */
    long faults;                  /* so many are known, and what they have written is, too */
    uint32_t fresh;        /* pages that the search under way has found and that were not known */
    bool mistrusts_faults; /* There was a fault that made more than one page. */
    bool searched;         /* The last rollback had to look for written pages. */
    int pagemap;
    bool has_pagemap_scan;
    /* Faults that are not this thread's: others ran in its memory, or a child did before its
     * exec(). */
    volatile bool threads_started, others_wrote;
} hot_state;

/* Opens what the search needs; false: the kernel does not give it. */
bool samovar_hot_open(hot_state *s);
/* From here on pages are watched. Takes the worker's own part of the image: last of all starts. */
bool samovar_hot_start(hot_state *s);
/* Page faults of this thread so far. */
long samovar_faults(void);
/* Whether pages may have been written that are not known to be hot. */
bool samovar_hot_touched(const hot_state *s);
/* Puts them back, in the rollback of that number. Leaves when the kernel refuses. */
void samovar_hot_restore(hot_state *s, bool touched, uint64_t rollback);

#endif
