/* Which pages requests change, and their way back.
 *
 * A page that was written is anonymous from then on: pagemap says so. Those that are found so twice
 * are *hot*: they are copied back after each request, which costs no page fault. One found for the
 * first time is dropped instead, and is the image's again: a rare large request leaves nothing
 * behind. A sample now and then finds hot pages that have gone cold, and drops them too. */
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
    COLD_AFTER = 4,    /* samples in a row that found a page unchanged */
    PAGEMAP_BATCH = 1024
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

static bool make_hot(image_survivors *s, char *page, const char *source, bool pinned) {
    if (s->hot_count == s->hot_room) {
        return false;
    }
    s->hot[s->hot_count++] = (hot_page){page, source, pinned, 0};
    return true;
}

static void drop(char *from, const char *to) {
    if (from < to) {
        syscall(SYS_madvise, from, (size_t)(to - from), MADV_DONTNEED);
    }
}

/* One dirty range within one region. Pages seen for the first time are dropped in runs. */
static void note_dirty(image_survivors *s, const image_region *r, char *from, const char *to) {
    char *run = from;
    for (char *page = from; page < to; page += IMAGE_PAGE) {
        const size_t offset = r->offset + (size_t)(page - r->at);
        uint8_t *known = &s->pages[offset / IMAGE_PAGE];
        if (*known == 0) {
            *known = PAGE_SEEN;
            continue;
        }
        drop(run, page);
        run = page + IMAGE_PAGE;
        if (*known == PAGE_SEEN && make_hot(s, page, samovar_image->view + offset, false)) {
            *known = PAGE_HOT;
        }
    }
    drop(run, to);
}

typedef void visitor(image_survivors *s, const image_region *r, char *from, const char *to);

/* Ranges and regions are both in order. */
static void for_each_dirty(image_survivors *s, uint32_t count, visitor *visit) {
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

/* Every page that differs from the image when the worker begins (thread id, its end of the ring):
 * it is copied back from a copy of its own. */
static void pin(image_survivors *s, const image_region *r, char *from, const char *to) {
    for (char *page = from; page < to; page += IMAGE_PAGE) {
        char *copy = s->baseline + s->baseline_len;
        const size_t offset = r->offset + (size_t)(page - r->at);
        if (make_hot(s, page, copy, true)) {
            memcpy(copy, page, IMAGE_PAGE);
            s->baseline_len += IMAGE_PAGE;
            s->pages[offset / IMAGE_PAGE] = PAGE_HOT;
        }
    }
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

bool samovar_hot_start(image_survivors *s) {
    const size_t pages = samovar_image->bytes / IMAGE_PAGE;
    s->hot_room = (uint32_t)pages;
    s->hot = samovar_shared_memory(pages * sizeof *s->hot);
    s->pages = samovar_shared_memory(pages);
    s->ranges = samovar_shared_memory(RANGES_MAX * sizeof *s->ranges);
    struct scan_request probe = {.size = sizeof probe};
    s->has_pagemap_scan = syscall(SYS_ioctl, s->pagemap, SCAN_IOCTL, &probe) == 0;
    uint32_t count;
    if (!s->hot || !s->pages || !s->ranges || !scan(s, &count)) {
        return false;
    }
    s->baseline = samovar_shared_memory((count_pages(s, count) + 1) * IMAGE_PAGE);
    if (!s->baseline) {
        return false;
    }
    for_each_dirty(s, count, pin);
    s->faults = faults();
    return true;
}

/* Pages that the last requests left alone become the image's again. */
static void sample(image_survivors *s) {
    for (uint32_t i = 0; i < s->hot_count;) {
        hot_page *h = &s->hot[i];
        if (h->pinned || memcmp(h->page, h->source, IMAGE_PAGE) != 0) {
            h->unchanged = 0;
            i++;
        } else if (++h->unchanged < COLD_AFTER) {
            i++;
        } else {
            drop(h->page, h->page + IMAGE_PAGE);
            s->pages[(size_t)(h->source - samovar_image->view) / IMAGE_PAGE] = PAGE_SEEN;
            *h = s->hot[--s->hot_count];
        }
    }
}

bool samovar_hot_touched(const image_survivors *s) {
    return faults() != s->faults || s->threads_started; /* A thread's faults are its own. */
}

void samovar_hot_restore(image_survivors *s, bool touched) {
    const bool sampled = s->rollbacks % SAMPLE_EVERY == SAMPLE_EVERY - 1;
    if (touched) {
        uint32_t count;
        if (!scan(s, &count)) {
            samovar_leave_for(LEAVE_MAPPING);
        }
        for_each_dirty(s, count, note_dirty);
    }
    if (sampled) {
        sample(s);
    }
    for (uint32_t i = 0; i < s->hot_count; i++) {
        memcpy(s->hot[i].page, s->hot[i].source, IMAGE_PAGE);
    }
    if (touched || sampled) {
        s->faults = faults();
    }
}
