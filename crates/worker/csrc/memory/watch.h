/* Pages that the kernel watches for us: they are equal to the image, and the kernel records
 * writes to them. */
#ifndef SAMOVAR_MEMORY_WATCH_H
#define SAMOVAR_MEMORY_WATCH_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int fd;         /* userfaultfd; -1: the kernel refuses it */
    bool works;     /* the image's regions are registered with it */
    uint32_t count; /* number of watched pages */
} watch_state;

enum { WATCHED_MAX = 16384 }; /* pages: a worker keeps 64 MiB for them */

/* Called before a worker's descriptors are recorded. */
void samovar_watch_open(watch_state *w);
/* Called when the mappings of the image's regions are final. */
void samovar_watch_start(watch_state *w);
/* Called after a request. Leaves if the watch has ended. */
void samovar_watch_verify(const watch_state *w);
/* Watches whole pages of one region, which must be present. Leaves if the kernel refuses. */
void samovar_watch(watch_state *w, char *from, const char *to);
void samovar_unwatch(watch_state *w, char *from, const char *to);

/* Collects pages one by one: neighbours need one call. */
typedef struct {
    char *from, *end;
} page_run;
/* Adds the next page. NULL: there are no more. */
void samovar_watch_next(watch_state *w, page_run *run, char *page);
void samovar_unwatch_next(watch_state *w, page_run *run, char *page);

#endif
