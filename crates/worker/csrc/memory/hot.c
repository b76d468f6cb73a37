/* Which pages requests change, and their way back.
 *
 * A page that was written is anonymous from then on: pagemap says so. Those that are found so twice
 * are *hot*: they are copied back after each request, which costs no page fault. One found for the
 * first time is dropped instead, and is the image's again: a rare large request leaves nothing
 * behind. Hot pages are compared with the image in turn. When the copies that nobody needed have
 * cost what a page fault does, they are watched instead (watch.c): copied back after the requests
 * that write them. Where the kernel cannot watch, they are dropped. The heap's free pages (heap.c)
 * are not copied.
 *
 * No page is written for the first time without a page fault, and no fault makes more than one page
 * so. So the search for written pages ends when it has found as many new ones as there were faults;
 * it begins where the last ones were. Faults that are known to lie elsewhere (interpose/memory.c:
 * files that the request maps) count as found. */
#define _GNU_SOURCE
#include "memory/hot.h"
#include "boundary.h"
#include "leave.h"
#include "memory/copy.h"
#include "memory/heap.h"
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
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
enum { SCAN_WRITTEN = 1 << 1, SCAN_FILE = 1 << 2, SCAN_PRESENT = 1 << 3, SCAN_SWAPPED = 1 << 4 };

enum {
    /* A page is compared at each fifth rollback: a prime, or half of the pages would be compared
     * after one of two kinds of requests that take turns, and half after the other. */
    COMPARE_TURNS = 5,
    COMPARE_TURNS_FEW = 13, /* another prime: few pages are soon copied */
    COMPARE_GROUP = 64,     /* pages: what is dropped together is one system call */
    /* Comparisons in a row that find a page unchanged before it is dropped, as a power of two:
     * after twenty rollbacks its copies have cost what its next fault will and the search for it.
     */
    PATIENCE = 2,
    PATIENCE_MAX = 10,
    SOON = 20,       /* rollbacks after which a page that was dropped is written again */
    FEW_PAGES = 256, /* hot: what the nearest caches hold */
    /* Hot pages that cost each request 0.3 ms, and 0.6 ms: they stay for fewer comparisons, and
     * join for being written again within fewer rollbacks. */
    MANY_PAGES = 1024,
    MOST_PAGES = 2048,
    SOON_MANY = 8,
    /* A watched page that is written again within so many rollbacks is cheaper to copy each time:
     * a fault costs as much as a few copies, or as twelve while the caches hold all of them. */
    SOON_WATCHED = 12,
    SOON_WATCHED_MANY = 2,
    DROP_FREE_EVERY = 1024, /* rollbacks: a large request's free pages go back to the kernel */
    FOUND_MAX = 256,        /* ranges in one answer of the kernel */
    PAGEMAP_BATCH = 1024,
    OWN_SLACK_PAGES = 64 /* for what is written while the worker's own part is taken */
};

/* What is known of a page of the image: one of these, whether a free one holds memory, and whether
 * it was hot and nobody wrote it any more. */
enum {
    PAGE_NEW = 0,
    PAGE_SEEN = 1,
    PAGE_HOT = 2,
    PAGE_FREE = 3,
    PAGE_WATCHED = 4,
    PAGE_STATE = 7,
    PAGE_FILLED = 8,
    PAGE_COOLED = 16
};

typedef void visitor(hot_state *s, const image_region *r, char *from, const char *to);

/* ---- finding them -------------------------------------------------------------------------- */

/* Shows [from, to) to `visit`, region by region; `at` is the first region that may be concerned. */
static void visit_range(hot_state *s, uint32_t at, uintptr_t from, uintptr_t to, visitor *visit) {
    const image_table *t = samovar_image;
    for (; at < t->region_count && (uintptr_t)t->regions[at].at < to; at++) {
        const image_region *r = &t->regions[at];
        const uintptr_t begin = (uintptr_t)r->at, end = begin + r->len;
        const uintptr_t low = from > begin ? from : begin, high = to < end ? to : end;
        if (low < high) {
            visit(s, r, (char *)low, (const char *)high);
        }
    }
}

/* Linux ≥ 6.7: the kernel walks its page tables and names the ranges. */
static bool search_by_ioctl(hot_state *s, const region_cluster *c, visitor *visit) {
    struct scan_range found[FOUND_MAX];
    struct scan_request request = {.size = sizeof request,
                                   .start = c->range.from,
                                   .end = c->range.to,
                                   .vec = (uint64_t)(uintptr_t)found,
                                   .vec_len = FOUND_MAX,
                                   .category_inverted = SCAN_FILE,
                                   .category_mask = SCAN_FILE | (s->watch.works ? SCAN_WRITTEN : 0),
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
            visit_range(s, at, found[i].start, found[i].end, visit);
        }
        request.start = request.walk_end;
    }
    return true;
}

/* Older kernels: eight bytes a page. Present or swapped, and not of a file. */
static bool search_by_reading(hot_state *s, uint32_t region, visitor *visit) {
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
                visit(s, r, at + i * IMAGE_PAGE, at + (i + run) * IMAGE_PAGE);
            }
            run += run == 0;
        }
    }
    return true;
}

static bool search_cluster(hot_state *s, const region_cluster *c, visitor *visit) {
    if (s->has_pagemap_scan) {
        return search_by_ioctl(s, c, visit);
    }
    for (uint32_t i = c->first; i < c->end; i++) {
        if (!search_by_reading(s, i, visit)) {
            return false;
        }
    }
    return true;
}

static bool search_all(hot_state *s, visitor *visit) {
    for (uint32_t i = 0; i < samovar_image->cluster_count; i++) {
        if (!search_cluster(s, &samovar_image->clusters[i], visit)) {
            return false;
        }
    }
    return true;
}

static void move_to_front(hot_state *s, uint32_t at) {
    const uint16_t cluster = s->order[at];
    memmove(&s->order[1], &s->order[0], at * sizeof s->order[0]);
    s->order[0] = cluster;
}

/* Until `fresh_max` pages are found that were not known. False: not all can be told. */
static bool search(hot_state *s, long fresh_max, visitor *visit) {
    const uint32_t clusters = samovar_image->cluster_count;
    s->fresh = s->once_count = 0;
    for (uint32_t i = 0; i < clusters && (s->fresh < fresh_max || s->mistrusts_faults); i++) {
        const uint32_t before = s->fresh;
        if (!search_cluster(s, &samovar_image->clusters[s->order[i]], visit)) {
            return false;
        }
        if (s->fresh > before) {
            move_to_front(s, i);
        }
        /* A kernel that makes several pages at one fault. */
        s->mistrusts_faults |= s->fresh > fresh_max;
    }
    return true;
}

/* ---- what to do with them ------------------------------------------------------------------ */

static size_t page_number(const image_region *r, const char *page) {
    return (r->offset + (size_t)(page - r->at)) / IMAGE_PAGE;
}

static void set_state(hot_state *s, size_t number, uint8_t state) {
    s->pages[number].state = state;
}

static void make_hot(hot_state *s, char *page, size_t number) {
    s->hot[s->count++] = (hot_page){page, (uint32_t)number, 0};
    set_state(s, number, PAGE_HOT);
}

/* Copied back after this request; then it is watched, or hot (copy_watched). */
static void copy_once(hot_state *s, char *page, size_t number) {
    s->once[s->once_count++] = (hot_page){page, (uint32_t)number, 0};
}

static bool can_watch(const hot_state *s) {
    return s->watch.works && s->watch.count + s->once_count < WATCHED_MAX;
}

/* What stays is a request's: locked memory (mlockall) for one. */
static void drop(char *from, const char *to) {
    if (from < to) {
        samovar_must(syscall(SYS_madvise, from, (size_t)(to - from), MADV_DONTNEED) == 0,
                     LEAVE_MAPPING);
    }
}

static bool drops_free(const hot_state *s) {
    return s->rollback % DROP_FREE_EVERY == DROP_FREE_EVERY - 1;
}

/* Whether the page was dropped so many rollbacks ago, or fewer. */
static bool was_dropped_within(const hot_state *s, const page_note *known, uint32_t count) {
    return (uint16_t)((uint16_t)s->rollback - known->dropped_at) <= count;
}

/* A page that is unchanged may have been written all the same, with what was there. If it is
 * written again as soon as it is dropped, it stays longer; if it comes back late, not so long. */
static void learn_patience(const hot_state *s, page_note *known) {
    if (!(known->state & PAGE_COOLED)) {
        return;
    }
    const bool soon = was_dropped_within(s, known, SOON);
    if (soon && known->patience < PATIENCE_MAX) {
        known->patience += 2;
    } else if (!soon && known->patience > 0) {
        known->patience--;
    }
}

/* Where many pages are hot, only one that is written all the time joins them: the others are paid
 * for by the requests that write them. */
static bool deserves_to_be_hot(const hot_state *s, const page_note *known) {
    return s->count <= MANY_PAGES || was_dropped_within(s, known, SOON_MANY);
}

/* Not known to be written. True: it goes back to the kernel. */
static bool note_fresh(hot_state *s, char *page, size_t number) {
    page_note *known = &s->pages[number];
    const bool again = (known->state & PAGE_STATE) == PAGE_SEEN;
    learn_patience(s, known);
    if (again && can_watch(s)) {
        copy_once(s, page, number);
        return false;
    }
    if (again && deserves_to_be_hot(s, known)) {
        make_hot(s, page, number);
        return false;
    }
    known->state = PAGE_SEEN;
    known->dropped_at = (uint16_t)s->rollback;
    return true;
}

/* It was watched until this request. */
static void note_rewritten(hot_state *s, char *page, size_t number) {
    learn_patience(s, &s->pages[number]);
    s->watch.count--;
    copy_once(s, page, number);
}

/* True: the page goes back to the kernel. */
static bool note_page(hot_state *s, char *page, size_t number) {
    page_note *known = &s->pages[number];
    switch (known->state & PAGE_STATE) {
    case PAGE_NEW:
    case PAGE_SEEN:
        s->fresh++;
        return note_fresh(s, page, number);
    case PAGE_FREE:
        s->fresh += !(known->state & PAGE_FILLED);
        known->state = drops_free(s) ? PAGE_FREE : PAGE_FREE | PAGE_FILLED;
        return drops_free(s);
    case PAGE_WATCHED:
        s->fresh++;
        note_rewritten(s, page, number);
        return false;
    default:
        return false;
    }
}

/* Written pages in one region; those that are dropped are dropped in runs. */
static void note_written(hot_state *s, const image_region *r, char *from, const char *to) {
    char *run = from;
    for (char *page = from; page < to; page += IMAGE_PAGE) {
        if (!note_page(s, page, page_number(r, page))) {
            drop(run, page);
            run = page + IMAGE_PAGE;
        }
    }
    drop(run, to);
}

static void note_free(hot_state *s, const image_region *r, char *from, const char *to) {
    for (const char *page = from; page < to; page += IMAGE_PAGE) {
        set_state(s, page_number(r, page), PAGE_FREE);
    }
}

static void find_free(void *state, char *from, const char *to) {
    visit_range(state, 0, (uintptr_t)from, (uintptr_t)to, note_free);
}

/* ---- the worker's own part of the image ---------------------------------------------------- */

/* What differs from the image when the worker begins (thread id, its end of the ring) goes to a
 * memory file of its own and is mapped back from it, like the image before: clean again, and copied
 * back only where requests write. Nothing here may change memory that is being replaced. */
typedef struct {
    hot_state *state;
    int file;
    size_t len, room;
    bool done;
} own_part;

static own_part *own;

static void take_own(hot_state *s, const image_region *r, char *from, const char *to) {
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

/* What is written from here on, a fault will show. */
static void take_all_own(void *argument) {
    own_part *job = argument;
    job->state->faults = samovar_faults();
    if (!search_all(job->state, take_own)) {
        job->done = false;
    }
}

/* ---- the two ends -------------------------------------------------------------------------- */

/* A page cannot be written for the first time without a fault, a major one if it was swapped out.
 */
long samovar_faults(void) {
    struct rusage usage;
    syscall(SYS_getrusage, RUSAGE_THREAD, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

static void count_page(hot_state *s, const image_region *r, char *from, const char *to) {
    (void)r;
    s->fresh += (uint32_t)((size_t)(to - from) / IMAGE_PAGE);
}

static void begin_pages(hot_state *s, size_t pages) {
    for (size_t i = 0; i < pages; i++) {
        s->pages[i].patience = PATIENCE;
        s->sources[i] = samovar_image->view + i * IMAGE_PAGE;
    }
}

static bool settle_own(hot_state *s) {
    if (!search_all(s, count_page)) {
        return false;
    }
    const size_t room = (s->fresh + OWN_SLACK_PAGES) * IMAGE_PAGE;
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

bool samovar_hot_open(hot_state *s) {
    s->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    samovar_watch_open(&s->watch);
    return s->pagemap >= 0;
}

bool samovar_hot_start(hot_state *s) {
    const size_t pages = samovar_image->bytes / IMAGE_PAGE;
    s->hot = samovar_shared_memory(pages * sizeof *s->hot);
    s->pages = samovar_shared_memory(pages * sizeof *s->pages);
    s->sources = samovar_shared_memory(pages * sizeof *s->sources);
    s->once = samovar_shared_memory(pages * sizeof *s->once);
    struct scan_request probe = {.size = sizeof probe};
    s->has_pagemap_scan = syscall(SYS_ioctl, s->pagemap, SCAN_IOCTL, &probe) == 0;
    if (!s->hot || !s->pages || !s->sources || !s->once) {
        return false;
    }
    begin_pages(s, pages);
    for (uint32_t i = 0; i < samovar_image->cluster_count; i++) {
        s->order[i] = (uint16_t)i;
    }
    samovar_heap_close();
    samovar_heap_for_each_free(find_free, s);
    if (!settle_own(s)) {
        return false;
    }
    if (s->has_pagemap_scan) {
        samovar_watch_start(&s->watch);
    }
    return true;
}

/* How many comparisons in a row may find this page unchanged: few where many pages are hot, unless
 * it has come back before. */
static uint32_t patience(const page_note *known, uint32_t hot) {
    if (hot <= MANY_PAGES) {
        return 1U << known->patience;
    }
    const bool comes_back = known->patience > PATIENCE;
    return comes_back ? 1U << PATIENCE : hot > MOST_PAGES ? 1 : 2;
}

/* True: nobody changes it any more. One that was hot for nothing again and again is new again. */
static bool has_cooled(hot_state *s, hot_page *h, uint32_t hot, bool in_turn, bool watches) {
    page_note *known = &s->pages[h->number];
    h->unchanged += in_turn;
    if (h->unchanged + !in_turn < patience(known, hot)) {
        return false;
    }
    known->state = PAGE_COOLED | (watches               ? PAGE_WATCHED
                                  : known->patience > 0 ? PAGE_SEEN
                                                        : PAGE_NEW);
    known->dropped_at = (uint16_t)s->rollback;
    return true;
}

static void let_go(hot_state *s, char *from, const char *to, bool watches) {
    if (watches) {
        samovar_watch(&s->watch, from, to);
    } else {
        drop(from, to);
    }
}

/* Copies the hot pages of one group; its part of the comparisons, and of the list, whose next free
 * place is `kept`. */
static uint32_t compare_group(hot_state *s, uint32_t from, uint32_t to, uint32_t kept,
                              bool in_turn) {
    const uint32_t hot = s->count;
    const bool watches = can_watch(s);
    char *run = NULL, *run_end = NULL;
    for (uint32_t i = from; i < to; i++) {
        hot_page h = s->hot[i];
        if (memcmp(h.page, s->sources[h.number], IMAGE_PAGE) != 0) {
            memcpy(h.page, s->sources[h.number], IMAGE_PAGE);
            h.unchanged = 0;
        } else if (has_cooled(s, &h, hot, in_turn, watches)) {
            if (h.page != run_end) {
                let_go(s, run, run_end, watches);
                run = h.page;
            }
            run_end = h.page + IMAGE_PAGE;
            continue;
        }
        s->hot[kept++] = h;
    }
    let_go(s, run, run_end, watches);
    return kept;
}

/* Part of a list of `all` pages. */
static void copy_pages(const hot_state *s, const hot_page *list, uint32_t count, uint32_t all) {
    uint32_t i = 0;
    for (; all > MOST_PAGES && i + 1 < count; i += 2) {
        samovar_copy_two((page_copy){list[i].page, s->sources[list[i].number]},
                         (page_copy){list[i + 1].page, s->sources[list[i + 1].number]});
    }
    for (; i < count; i++) {
        memcpy(list[i].page, s->sources[list[i].number], IMAGE_PAGE);
    }
    samovar_copies_done();
}

/* Where most pages are hot, groups that nobody has changed are signs of a small request among large
 * ones: then the next is compared, too. */
static void copy_hot(hot_state *s) {
    const uint32_t hot = s->count, turns = hot > FEW_PAGES ? COMPARE_TURNS : COMPARE_TURNS_FEW;
    const uint32_t turn = (uint32_t)(s->rollback % turns);
    uint32_t kept = 0;
    bool quiet = false;
    for (uint32_t from = 0, group = 0; from < hot; from += COMPARE_GROUP, group++) {
        const uint32_t to = hot - from < COMPARE_GROUP ? hot : from + COMPARE_GROUP;
        const bool in_turn = group % turns == turn;
        if (in_turn || quiet) {
            const uint32_t before = kept;
            kept = compare_group(s, from, to, kept, in_turn);
            quiet = kept == before && hot > MOST_PAGES;
            continue;
        }
        copy_pages(s, &s->hot[from], to - from, hot);
        if (kept < from) {
            memmove(&s->hot[kept], &s->hot[from], (to - from) * sizeof *s->hot);
        }
        kept += to - from;
    }
    s->count = kept;
}

/* Whether it is cheaper to copy each time, where a request has written many pages or few. */
static bool is_written_often(const hot_state *s, const page_note *known, bool many) {
    if (many) {
        return was_dropped_within(s, known, SOON_WATCHED_MANY);
    }
    return (known->state & PAGE_STATE) == PAGE_SEEN || was_dropped_within(s, known, SOON_WATCHED);
}

/* Pages that are written now and then. They were found in order: neighbours are one call. */
static void copy_watched(hot_state *s) {
    const bool many = s->count + s->once_count > MANY_PAGES;
    char *run = NULL, *run_end = NULL;
    copy_pages(s, s->once, s->once_count, s->once_count);
    for (uint32_t i = 0; i < s->once_count; i++) {
        char *page = s->once[i].page;
        const uint32_t number = s->once[i].number;
        page_note *known = &s->pages[number];
        if (is_written_often(s, known, many)) {
            make_hot(s, page, number);
            continue;
        }
        known->state = PAGE_WATCHED;
        known->dropped_at = (uint16_t)s->rollback;
        if (page != run_end) {
            samovar_watch(&s->watch, run, run_end);
            run = page;
        }
        run_end = page + IMAGE_PAGE;
    }
    samovar_watch(&s->watch, run, run_end);
    s->once_count = 0;
}

/* Their memory goes back to the kernel when nobody has written them for long. */
static bool is_unused(const hot_state *s, size_t number) {
    const page_note *known = &s->pages[number];
    return (known->state & PAGE_STATE) == PAGE_WATCHED &&
           !was_dropped_within(s, known, DROP_FREE_EVERY);
}

static void drop_unused(hot_state *s) {
    const image_table *t = samovar_image;
    for (uint32_t i = 0; s->watch.count > 0 && i < t->region_count; i++) {
        const image_region *r = &t->regions[i];
        for (char *page = r->at; page < r->at + r->len; page += IMAGE_PAGE) {
            const size_t number = page_number(r, page);
            if (is_unused(s, number)) {
                samovar_unwatch(&s->watch, page, page + IMAGE_PAGE);
                drop(page, page + IMAGE_PAGE);
                set_state(s, number, PAGE_NEW);
            }
        }
    }
}

/* Whether others than this thread have run in its memory: their faults are not counted here. */
static bool counts_all(const hot_state *s) {
    return !s->threads_started && !s->others_wrote;
}

bool samovar_hot_touched(const hot_state *s) {
    return samovar_faults() != s->faults || s->threads_started;
}

void samovar_hot_restore(hot_state *s, bool touched, uint64_t rollback) {
    samovar_watch_verify(&s->watch);
    s->rollback = rollback;
    s->searched = touched || drops_free(s);
    if (s->searched) {
        const bool by_count = counts_all(s) && !drops_free(s);
        const long now = samovar_faults();
        samovar_must(search(s, by_count ? now - s->faults : LONG_MAX, note_written), LEAVE_MAPPING);
        s->faults = now;
        s->threads_started = s->others_wrote = false;
    }
    copy_hot(s);
    copy_watched(s);
    if (drops_free(s)) {
        drop_unused(s);
    }
}
