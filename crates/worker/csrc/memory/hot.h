/* Pages of the image that requests write, and how they are restored. */
#ifndef SAMOVAR_MEMORY_HOT_H
#define SAMOVAR_MEMORY_HOT_H

#include "memory/bulk.h"
#include "memory/own.h"
#include "memory/persistent.h"
#include "memory/watch.h"

/* State of a page of the image. */
typedef struct {
    uint8_t state;
    uint8_t patience : 7, in_bulk : 1;
    /* Rollback in which it was dropped, watched or last written, by its last bits. */
    uint16_t dropped_at;
} page_note;

typedef struct {
    hot_page *hot;
    uint32_t count;
    hot_page *once; /* copied back this time, and then watched */
    uint32_t once_count;
    watch_state watch;
    bulk_state bulk;
    page_note *pages; /* by page of the image */
    own_part own;
    search_state search;
    uint64_t rollback; /* number of the current rollback */
    long faults;       /* faults so far whose written pages are known */
    bool searched;     /* the last rollback had to search for written pages */
    /* Faults not counted for this thread: other threads ran in its memory, or a child did before
     * its exec(). */
    volatile bool threads_started, others_wrote;
} hot_state;

PERSISTENT_STATE(hot_state, samovar_hot_state, hot);

/* Opens the descriptors for the search. Returns false if the kernel refuses. */
bool samovar_hot_open(hot_state *s);
/* From here on pages are watched. Takes the worker's own part of the image, so it must be the
 * last step of the start. */
bool samovar_hot_start(hot_state *s);
/* Returns true if the kind of the next request is needed, because there have been large
 * requests. */
bool samovar_hot_wants_kind(const hot_state *s);
/* Called when a request begins; `kind` is the number of its kind (bulk.h). Leaves if the kernel
 * refuses. */
void samovar_hot_expect(hot_state *s, uint32_t kind);
/* Returns true if pages that are not known to be hot may have been written. */
bool samovar_hot_touched(const hot_state *s);
/* Restores the pages, in the rollback of that number. Leaves if the kernel refuses. */
void samovar_hot_restore(hot_state *s, bool touched, uint64_t rollback);

#endif
