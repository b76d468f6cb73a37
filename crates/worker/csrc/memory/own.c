/* The worker's own part of the image.
 *
 * When the worker begins, some pages differ from the image (thread id, its end of the ring).
 * They go to a memory file of the worker's own and are mapped back from it, like the image
 * before. They are then clean again, and copied back only where requests write. Nothing here may
 * change memory that is being replaced. */
#define _GNU_SOURCE
#include "memory/own.h"
#include "boundary.h"
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { OWN_SLACK_PAGES = 64 }; /* for pages that are written meanwhile */

/* A page cannot be written for the first time without a fault. It is a major fault if the page
 * was swapped out. */
long samovar_faults(void) {
    struct rusage usage;
    syscall(SYS_getrusage, RUSAGE_THREAD, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

typedef struct {
    own_part *part;
    int file;
    size_t len, room;
    bool done;
} own_job;

static own_job *own;

static void take_own(void *argument, const image_region *r, char *from, const char *to) {
    own_part *part = argument;
    const size_t len = (size_t)(to - from);
    if (!own->done || own->len + len > own->room ||
        !samovar_write_all(own->file, from, len, (off_t)own->len) ||
        (char *)syscall(SYS_mmap, from, len, r->prot, MAP_PRIVATE | MAP_FIXED, own->file,
                        own->len) != from) {
        own->done = false;
        return;
    }
    for (size_t at = 0; at < len; at += IMAGE_PAGE) {
        part->sources[samovar_page_number(r, from + at)] = part->baseline + own->len + at;
    }
    own->len += len;
}

/* Writes from here on are detected by their faults. */
static void take_all_own(void *argument) {
    own_job *job = argument;
    job->part->faults = samovar_faults();
    if (!samovar_search_all(job->part->search, take_own, job->part)) {
        job->done = false;
    }
}

static void count_pages(void *argument, const image_region *r, char *from, const char *to) {
    size_t *pages = argument;
    (void)r;
    *pages += (size_t)(to - from) / IMAGE_PAGE;
}

bool samovar_own_take(own_part *part) {
    size_t pages = 0;
    if (!samovar_search_all(part->search, count_pages, &pages)) {
        return false;
    }
    const size_t room = (pages + OWN_SLACK_PAGES) * IMAGE_PAGE;
    own_job *job = samovar_shared_memory(sizeof *job);
    int file = samovar_memory_file();
    bool done = job && file >= 0 && ftruncate(file, (off_t)room) == 0;
    if (done) {
        void *view = (void *)syscall(SYS_mmap, NULL, room, PROT_READ, MAP_SHARED, file, 0);
        part->baseline = view;
        *job = (own_job){part, file, 0, room, view != MAP_FAILED};
        own = job;
        done = samovar_run_aside(take_all_own, job) && job->done;
    }
    if (job) {
        syscall(SYS_munmap, job, sizeof *job);
    }
    if (file >= 0) {
        syscall(SYS_close, file);
    }
    return done;
}
