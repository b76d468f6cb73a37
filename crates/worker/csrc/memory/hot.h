/* Which pages of the image requests write, and their way back. */
#ifndef SAMOVAR_MEMORY_HOT_H
#define SAMOVAR_MEMORY_HOT_H

#include "memory/bulk.h"
#include "memory/own.h"
#include "memory/watch.h"

/* What is known of a page of the image. */
typedef struct {
    uint8_t state;
    uint8_t patience : 7, in_bulk : 1;
    /* Or since when it is watched, or when it was written last: rollback, by its last bits. */
    uint16_t dropped_at;
} page_note;

typedef struct {
    hot_page *hot;
    uint32_t count;
    hot_page *once; /* copied back this time, and watched then */
    uint32_t once_count;
    watch_state watch;
    bulk_state bulk;
    page_note *pages; /* by page of the image */
    own_part own;
    search_state search;
    uint64_t rollback; /* the number of the one under way */
    long faults;       /* so many are known, and what they have written is, too */
    bool searched;     /* The last rollback had to look for written pages. */
    /* Faults that are not this thread's: others ran in its memory, or a child did before its
     * exec(). */
    volatile bool threads_started, others_wrote;
} hot_state;

/* Opens what the search needs; false: the kernel does not give it. */
bool samovar_hot_open(hot_state *s);
/* From here on pages are watched. Takes the worker's own part of the image: last of all starts. */
bool samovar_hot_start(hot_state *s);
/* Whether it helps to know what kind of request begins: where large ones have been. */
bool samovar_hot_wants_kind(const hot_state *s);
/* A request begins whose kind is known by this number (bulk.h). Leaves when the kernel refuses. */
void samovar_hot_expect(hot_state *s, uint32_t kind);
/* Whether pages may have been written that are not known to be hot. */
bool samovar_hot_touched(const hot_state *s);
/* Puts them back, in the rollback of that number. Leaves when the kernel refuses. */
void samovar_hot_restore(hot_state *s, bool touched, uint64_t rollback);

#endif
