/* Finds the pages of the image that were written, in the kernel's page tables. */
#define _GNU_SOURCE
#include "memory/search.h"
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From linux/fs.h of Linux 6.7; older headers lack it. */
struct scan_range {
    uint64_t start, end, categories;
};
struct scan_request {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages, category_inverted,
        category_mask, category_anyof_mask, return_mask;
};
#define SCAN_IOCTL _IOWR('f', 16, struct scan_request)
enum { SCAN_WRITTEN = 1 << 1, SCAN_FILE = 1 << 2, SCAN_PRESENT = 1 << 3, SCAN_SWAPPED = 1 << 4 };

enum {
    FOUND_MAX = 256, /* ranges per call of the kernel */
    PAGEMAP_BATCH = 1024
};

void samovar_visit_range(uint32_t at, uintptr_t from, uintptr_t to, page_visitor *visit,
                         void *argument) {
    const image_table *t = samovar_image;
    for (; at < t->region_count && (uintptr_t)t->regions[at].at < to; at++) {
        const image_region *r = &t->regions[at];
        const uintptr_t begin = (uintptr_t)r->at, end = begin + r->len;
        const uintptr_t low = from > begin ? from : begin, high = to < end ? to : end;
        if (low < high) {
            visit(argument, r, (char *)low, (const char *)high);
        }
    }
}

/* Linux ≥ 6.7: the kernel walks its page tables and returns the ranges. */
static bool search_by_ioctl(search_state *s, const region_cluster *c, page_visitor *visit,
                            void *argument) {
    struct scan_range found[FOUND_MAX];
    struct scan_request request = {.size = sizeof request,
                                   .start = c->range.from,
                                   .end = c->range.to,
                                   .vec = (uint64_t)(uintptr_t)found,
                                   .vec_len = FOUND_MAX,
                                   .category_inverted = SCAN_FILE,
                                   .category_mask = SCAN_FILE | (s->watches ? SCAN_WRITTEN : 0),
                                   .category_anyof_mask = SCAN_PRESENT | SCAN_SWAPPED,
                                   .return_mask = SCAN_FILE};
    uint32_t at = c->first;
    while (request.start < c->range.to) {
        const long n = syscall(SYS_ioctl, s->pagemap, SCAN_IOCTL, &request);
        if (n < 0 || request.walk_end <= request.start) {
            return false;
        }
        for (long i = 0; i < n; i++) {
            while (at + 1 < c->end &&
                   (uintptr_t)samovar_image->regions[at + 1].at <= found[i].start) {
                at++;
            }
            samovar_visit_range(at, found[i].start, found[i].end, visit, argument);
        }
        request.start = request.walk_end;
    }
    return true;
}

/* Older kernels: reads eight bytes per page. Written pages are present or swapped, and not of a
 * file. */
static bool search_by_reading(search_state *s, uint32_t region, page_visitor *visit,
                              void *argument) {
    uint64_t entries[PAGEMAP_BATCH];
    const image_region *r = &samovar_image->regions[region];
    const size_t pages = r->len / IMAGE_PAGE;
    for (size_t first = 0; first < pages; first += PAGEMAP_BATCH) {
        const size_t n = pages - first < PAGEMAP_BATCH ? pages - first : PAGEMAP_BATCH;
        char *at = r->at + first * IMAGE_PAGE;
        const off_t entry = (off_t)((uintptr_t)at / IMAGE_PAGE * 8);
        if (pread(s->pagemap, entries, n * 8, entry) != (ssize_t)(n * 8)) {
            return false;
        }
        for (size_t i = 0, run; i < n; i += run) {
            run = 0;
            while (i + run < n && entries[i + run] >> 62 != 0 && !(entries[i + run] >> 61 & 1)) {
                run++;
            }
            if (run > 0) {
                visit(argument, r, at + i * IMAGE_PAGE, at + (i + run) * IMAGE_PAGE);
            }
            run += run == 0;
        }
    }
    return true;
}

static bool search_cluster(search_state *s, const region_cluster *c, page_visitor *visit,
                           void *argument) {
    if (s->has_pagemap_scan) {
        return search_by_ioctl(s, c, visit, argument);
    }
    for (uint32_t i = c->first; i < c->end; i++) {
        if (!search_by_reading(s, i, visit, argument)) {
            return false;
        }
    }
    return true;
}

bool samovar_search_all(search_state *s, page_visitor *visit, void *argument) {
    for (uint32_t i = 0; i < samovar_image->cluster_count; i++) {
        if (!search_cluster(s, &samovar_image->clusters[i], visit, argument)) {
            return false;
        }
    }
    return true;
}

static void move_to_front(search_state *s, uint32_t at) {
    const uint16_t cluster = s->order[at];
    memmove(&s->order[1], &s->order[0], at * sizeof s->order[0]);
    s->order[0] = cluster;
}

bool samovar_search(search_state *s, long fresh_max, page_visitor *visit, void *argument) {
    const uint32_t clusters = samovar_image->cluster_count;
    s->fresh = 0;
    for (uint32_t i = 0; i < clusters && (s->fresh < fresh_max || s->mistrusts_faults); i++) {
        const uint32_t before = s->fresh;
        if (!search_cluster(s, &samovar_image->clusters[s->order[i]], visit, argument)) {
            return false;
        }
        if (s->fresh > before) {
            move_to_front(s, i);
        }
        /* Happens with a kernel that makes several pages with one fault. */
        s->mistrusts_faults |= s->fresh > fresh_max;
    }
    return true;
}

bool samovar_search_open(search_state *s) {
    s->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    return s->pagemap >= 0;
}

void samovar_search_start(search_state *s) {
    struct scan_request probe = {.size = sizeof probe};
    s->has_pagemap_scan = syscall(SYS_ioctl, s->pagemap, SCAN_IOCTL, &probe) == 0;
    for (uint32_t i = 0; i < samovar_image->cluster_count; i++) {
        s->order[i] = (uint16_t)i;
    }
}
