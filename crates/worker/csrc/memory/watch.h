/* Pages that the kernel watches for us: they are equal to the image, and it notes when one of them
 * is written. */
#ifndef SAMOVAR_MEMORY_WATCH_H
#define SAMOVAR_MEMORY_WATCH_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int fd;         /* userfaultfd; -1: the kernel has none for us */
    bool works;     /* The image's regions are registered with it. */
    uint32_t count; /* pages that are watched */
} watch_state;

enum { WATCHED_MAX = 16384 }; /* pages: what a worker keeps for them, 64 MiB */

/* Before a worker's descriptors are noted. */
void samovar_watch_open(watch_state *w);
/* When the image's regions are mapped for good. */
void samovar_watch_start(watch_state *w);
/* After a request. Leaves when the watch has ended. */
void samovar_watch_verify(const watch_state *w);
/* Whole pages of one region that are there. Leaves when the kernel refuses. */
void samovar_watch(watch_state *w, char *from, const char *to);
void samovar_unwatch(watch_state *w, char *from, const char *to);

/* Pages one by one: neighbours are one call. */
typedef struct {
    char *from, *end;
} page_run;
/* The next page; NULL: that was the last one. */
void samovar_watch_next(watch_state *w, page_run *run, char *page);
void samovar_unwatch_next(watch_state *w, page_run *run, char *page);

#endif
