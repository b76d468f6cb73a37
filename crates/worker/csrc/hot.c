/* Which pages requests change, and their way back.
 *
 * A page that was written is anonymous from then on: pagemap says so. Those that are found so twice
 * are *hot*: they are copied back after each request, which costs no page fault. One found for the
 * first time is dropped instead, and is the image's again: a rare large request leaves nothing
 * behind. A sample now and then finds hot pages that have gone cold, and drops them too; each time
 * that one comes back it may stay twice as long. The heap's free pages (heap.c) are not copied. */
#define _GNU_SOURCE
#include "image.h"
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* linux/fs.h of Linux 6.7; older headers lack it. */
struct scan_range {
    uint64_t start, end, categories;
};
struct scan_request {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages, category_inverted,
        category_mask, category_anyof_mask, return_mask;
};
#define SCAN_IOCTL _IOWR('f', 16, struct scan_request)
enum { SCAN_FILE = 1 << 2, SCAN_PRESENT = 1 << 3, SCAN_SWAPPED = 1 << 4 };

enum {
    SAMPLE_EVERY = 64, /* rollbacks */
    COLD_AFTER = 4,    /* samples in a row that found a page unchanged; doubled by each return */
    DROP_FREE_EVERY = 4096, /* rollbacks: a large request's free pages go back to the kernel */
    PAGEMAP_BATCH = 1024
};

/* What is known of a page of the image: one of these, and how often it has been dropped as cold. */
enum {
    PAGE_NEW = 0,
    PAGE_SEEN = 1,
    PAGE_HOT = 2,
    PAGE_FREE = 3,
    PAGE_STATE = 3,
    PAGE_DROP = 4,
    PAGE_DROPS_MAX = 9
};

/* ---- finding them -------------------------------------------------------------------------- */

/* False: more than can be noted. */
static bool add_range(image_survivors *s, uint32_t *count, uintptr_t from, uintptr_t to) {
    if (*count > 0 && s->ranges[*count - 1].to == from) {
        s->ranges[*count - 1].to = to;
        return true;
    }
    if (*count == RANGES_MAX) {
        return false;
    }
    s->ranges[(*count)++] = (address_range){from, to};
    return true;
}

/* Linux ≥ 6.7: the kernel walks its page tables and names the ranges. */
static bool scan_by_ioctl(image_survivors *s, const address_range *c, uint32_t *count) {
    struct scan_range found[256];
    struct scan_request request = {.size = sizeof request,
                                   .start = c->from,
                                   .end = c->to,
                                   .vec = (uint64_t)(uintptr_t)found,
                                   .vec_len = sizeof found / sizeof found[0],
                                   .category_inverted = SCAN_FILE,
                                   .category_mask = SCAN_FILE,
                                   .category_anyof_mask = SCAN_PRESENT | SCAN_SWAPPED,
                                   .return_mask = SCAN_FILE};
    while (request.start < c->to) {
        long n = syscall(SYS_ioctl, s->pagemap, SCAN_IOCTL, &request);
        if (n < 0) {
            return false;
        }
        for (long i = 0; i < n; i++) {
            if (!add_range(s, count, found[i].start, found[i].end)) {
                return false;
            }
        }
        request.start = request.walk_end;
    }
    return true;
}

/* Older kernels: eight bytes a page. Present or swapped, and not of a file. */
static bool scan_by_reading(image_survivors *s, const image_region *r, uint32_t *count) {
    uint64_t entries[PAGEMAP_BATCH];
    const size_t pages = r->len / IMAGE_PAGE;
    for (size_t first = 0; first < pages; first += PAGEMAP_BATCH) {
        size_t n = pages - first < PAGEMAP_BATCH ? pages - first : PAGEMAP_BATCH;
        uintptr_t at = (uintptr_t)r->at + first * IMAGE_PAGE;
        if (pread(s->pagemap, entries, n * 8, (off_t)(at / IMAGE_PAGE * 8)) != (ssize_t)(n * 8)) {
            return false;
        }
        for (size_t i = 0; i < n; i++) {
            bool dirty = entries[i] >> 62 != 0 && !(entries[i] >> 61 & 1);
            uintptr_t page = at + i * IMAGE_PAGE;
            if (dirty && !add_range(s, count, page, page + IMAGE_PAGE)) {
                return false;
            }
        }
    }
    return true;
}

static bool scan(image_survivors *s, uint32_t *count) {
    const image_table *t = samovar_image;
    *count = 0;
    if (s->has_pagemap_scan) {
        for (uint32_t i = 0; i < t->cluster_count; i++) {
            if (!scan_by_ioctl(s, &t->clusters[i], count)) {
                return false;
            }
        }
        return true;
    }
    for (uint32_t i = 0; i < t->region_count; i++) {
        if (!scan_by_reading(s, &t->regions[i], count)) {
            return false;
        }
    }
    return true;
}

/* ---- what to do with them ------------------------------------------------------------------ */

static size_t page_number(const image_region *r, const char *page) {
    return (r->offset + (size_t)(page - r->at)) / IMAGE_PAGE;
}

static void set_state(image_survivors *s, size_t number, uint8_t state) {
    s->pages[number] = (uint8_t)((s->pages[number] & ~PAGE_STATE) | state);
}

static void make_hot(image_survivors *s, char *page, size_t number) {
    if (s->hot_count < s->hot_room) {
        s->hot[s->hot_count++] = (hot_page){page, (uint32_t)number, 0};
        set_state(s, number, PAGE_HOT);
    }
}

static void drop(char *from, const char *to) {
    if (from < to) {
        syscall(SYS_madvise, from, (size_t)(to - from), MADV_DONTNEED);
    }
}

/* One dirty range within one region. Pages seen for the first time are dropped in runs. */
static void note_dirty(image_survivors *s, const image_region *r, char *from, const char *to) {
    const bool drops_free = s->rollbacks % DROP_FREE_EVERY == DROP_FREE_EVERY - 1;
    char *run = from;
    for (char *page = from; page < to; page += IMAGE_PAGE) {
        const size_t number = page_number(r, page);
        const uint8_t state = s->pages[number] & PAGE_STATE;
        if (state == PAGE_NEW || (state == PAGE_FREE && drops_free)) {
            set_state(s, number, state == PAGE_NEW ? PAGE_SEEN : PAGE_FREE);
            continue;
        }
        drop(run, page);
        run = page + IMAGE_PAGE;
        if (state == PAGE_SEEN) {
            make_hot(s, page, number);
        }
    }
    drop(run, to);
}

typedef void visitor(image_survivors *s, const image_region *r, char *from, const char *to);

/* Ranges and regions are both in order. */
static void for_each_part(image_survivors *s, uint32_t count, visitor *visit) {
    const image_table *t = samovar_image;
    for (uint32_t i = 0, at = 0; i < count && at < t->region_count;) {
        const image_region *r = &t->regions[at];
        const uintptr_t begin = (uintptr_t)r->at, end = begin + r->len;
        const uintptr_t from = s->ranges[i].from > begin ? s->ranges[i].from : begin;
        const uintptr_t to = s->ranges[i].to < end ? s->ranges[i].to : end;
        if (from < to) {
            visit(s, r, (char *)from, (const char *)to);
        }
        if (s->ranges[i].to <= end) {
            i++;
        } else {
            at++;
        }
    }
}

static void note_free(image_survivors *s, const image_region *r, char *from, const char *to) {
    for (const char *page = from; page < to; page += IMAGE_PAGE) {
        set_state(s, page_number(r, page), PAGE_FREE);
    }
}

static void find_free(image_survivors *s, char *from, const char *to) {
    s->ranges[0] = (address_range){(uintptr_t)from, (uintptr_t)to};
    for_each_part(s, 1, note_free);
}

/* ---- the worker's own part of the image ---------------------------------------------------- */

/* What differs from the image when the worker begins (thread id, its end of the ring) goes to a
 * memory file of its own and is mapped back from it, like the image before: clean again, and copied
 * back only where requests write. Nothing here may change memory that is being replaced. */
typedef struct {
    image_survivors *survivors;
    int file;
    size_t len, room;
    bool done;
} own_part;

static own_part *own;

static void take_own(image_survivors *s, const image_region *r, char *from, const char *to) {
    const size_t len = (size_t)(to - from);
    if (!own->done || own->len + len > own->room ||
        !samovar_write_all(own->file, from, len, (off_t)own->len) ||
        (char *)syscall(SYS_mmap, from, len, r->prot, MAP_PRIVATE | MAP_FIXED, own->file,
                        own->len) != from) {
        own->done = false;
        return;
    }
    for (size_t at = 0; at < len; at += IMAGE_PAGE) {
        s->sources[page_number(r, from + at)] = s->baseline + own->len + at;
    }
    own->len += len;
}

static void take_all_own(void *argument) {
    own_part *job = argument;
    for_each_part(job->survivors, job->survivors->range_count, take_own);
}

/* ---- the two ends -------------------------------------------------------------------------- */

/* A page cannot become dirty without a fault, a major one if it was swapped out. */
static long faults(void) {
    struct rusage usage;
    syscall(SYS_getrusage, RUSAGE_THREAD, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

static size_t count_pages(const image_survivors *s, uint32_t ranges) {
    size_t pages = 0;
    for (uint32_t i = 0; i < ranges; i++) {
        pages += (s->ranges[i].to - s->ranges[i].from) / IMAGE_PAGE;
    }
    return pages;
}

static void source_from_image(image_survivors *s, size_t pages) {
    for (size_t i = 0; i < pages; i++) {
        s->sources[i] = samovar_image->view + i * IMAGE_PAGE;
    }
}

static bool settle_own(image_survivors *s) {
    const size_t room = (count_pages(s, s->range_count) + 1) * IMAGE_PAGE;
    own_part *job = samovar_shared_memory(sizeof *job);
    int file = samovar_memory_file();
    bool done = job && file >= 0 && ftruncate(file, (off_t)room) == 0;
    if (done) {
        void *view = (void *)syscall(SYS_mmap, NULL, room, PROT_READ, MAP_SHARED, file, 0);
        s->baseline = view;
        *job = (own_part){s, file, 0, room, view != MAP_FAILED};
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

bool samovar_hot_start(image_survivors *s) {
    const size_t pages = samovar_image->bytes / IMAGE_PAGE;
    s->hot_room = (uint32_t)pages;
    s->hot = samovar_shared_memory(pages * sizeof *s->hot);
    s->pages = samovar_shared_memory(pages);
    s->sources = samovar_shared_memory(pages * sizeof *s->sources);
    s->ranges = samovar_shared_memory(RANGES_MAX * sizeof *s->ranges);
    struct scan_request probe = {.size = sizeof probe};
    s->has_pagemap_scan = syscall(SYS_ioctl, s->pagemap, SCAN_IOCTL, &probe) == 0;
    if (!s->hot || !s->pages || !s->sources || !s->ranges) {
        return false;
    }
    source_from_image(s, pages);
    samovar_heap_close();
    samovar_heap_for_each_free(find_free, s);
    if (!scan(s, &s->range_count) || !settle_own(s)) {
        return false;
    }
    s->faults = faults();
    return true;
}

/* Pages that the last requests left alone become the image's again. */
static void sample(image_survivors *s) {
    for (uint32_t i = 0; i < s->hot_count;) {
        hot_page *h = &s->hot[i];
        const uint8_t drops = s->pages[h->number] / PAGE_DROP;
        if (memcmp(h->page, s->sources[h->number], IMAGE_PAGE) != 0) {
            h->unchanged = 0;
            i++;
        } else if (++h->unchanged < COLD_AFTER << drops) {
            i++;
        } else {
            drop(h->page, h->page + IMAGE_PAGE);
            set_state(s, h->number, PAGE_SEEN);
            s->pages[h->number] += drops < PAGE_DROPS_MAX ? PAGE_DROP : 0;
            *h = s->hot[--s->hot_count];
        }
    }
}

bool samovar_hot_touched(const image_survivors *s) {
    return faults() != s->faults || s->threads_started; /* A thread's faults are its own. */
}

void samovar_hot_restore(image_survivors *s, bool touched) {
    const bool sampled = s->rollbacks % SAMPLE_EVERY == SAMPLE_EVERY - 1;
    if (touched || s->rollbacks % DROP_FREE_EVERY == DROP_FREE_EVERY - 1) {
        if (!scan(s, &s->range_count)) {
            samovar_leave_for(LEAVE_MAPPING);
        }
        for_each_part(s, s->range_count, note_dirty);
    }
    if (sampled) {
        sample(s);
    }
    for (uint32_t i = 0; i < s->hot_count; i++) {
        memcpy(s->hot[i].page, s->sources[s->hot[i].number], IMAGE_PAGE);
    }
    if (touched || sampled) {
        s->faults = faults();
    }
}
