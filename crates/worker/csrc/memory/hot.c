/* Pages that requests change, and how they are restored.
 *
 * A page that was written is anonymous from then on, which pagemap reports. A page found written
 * twice is *hot*: it is copied back after each request, which costs no page fault. A page found
 * for the first time is dropped instead, and has the image's content again. So a rare large
 * request leaves no pages.
 *
 * Hot pages are compared with the image in turn. A page is no longer hot when its unnecessary
 * copies have cost as much as a page fault. It is then watched (watch.c), and copied back only
 * after requests that write it. If the kernel cannot watch pages, the page is dropped. Free
 * pages of the heap (heap.c) are not copied.
 *
 * A page cannot be written for the first time without a page fault, and one fault makes no more
 * than one page anonymous. So the search for written pages ends when it has found as many new
 * ones as there were faults. It begins where the last ones were found. Faults known to be
 * elsewhere (interpose/memory.c: files that the request maps) count as found. */
#define _GNU_SOURCE
#include "memory/hot.h"
#include "boundary.h"
#include "leave.h"
#include "memory/copy.h"
#include "memory/heap.h"
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    /* A page is compared at each fifth rollback. The number is a prime. Otherwise, if two kinds
     * of requests alternate, half of the pages would be compared only after one kind, and half
     * only after the other. */
    COMPARE_TURNS = 5,
    COMPARE_TURNS_FEW = 13, /* another prime: few pages are quickly copied */
    COMPARE_GROUP = 64,     /* pages: dropping a group is one system call */
    /* Comparisons in a row that find a page unchanged before it is dropped, as a power of two.
     * After twenty rollbacks its copies have cost as much as its next fault and the search for
     * it. */
    PATIENCE = 2,
    PATIENCE_MAX = 10,
    SOON = 20,       /* rollbacks: a dropped page written within them was needed */
    FEW_PAGES = 256, /* hot pages that fit into the nearest caches */
    /* Hot pages that cost each request 0.3 ms, and 0.6 ms. Above these numbers a page stays hot
     * for fewer comparisons, and becomes hot only if it is written again within fewer rollbacks. */
    MANY_PAGES = 1024,
    MOST_PAGES = 2048,
    SOON_MANY = 8,
    /* A watched page that is written again within this number of rollbacks is cheaper to copy
     * each time. A fault costs as much as a few copies, or as twelve while the caches hold all
     * of them. */
    SOON_WATCHED = 12,
    SOON_WATCHED_MANY = 2,
    GAP_PAGES_MAX = 8,
    BULK_PATIENCE = 3,     /* comparisons in a row that find a group's page unchanged */
    DROP_FREE_EVERY = 1024 /* rollbacks after which free pages of a large request are dropped */
};

/* State of a page of the image: one of the first five, and two flags. FILLED: a free page holds
 * memory. COOLED: the page was hot, and was then no longer written. */
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

/* ---- state changes of pages ---------------------------------------------------------------- */

static void set_state(hot_state *s, size_t number, uint8_t state) {
    s->pages[number].state = state;
}

static void make_hot(hot_state *s, char *page, size_t number) {
    s->hot[s->count++] = (hot_page){page, (uint32_t)number, 0};
    set_state(s, number, PAGE_HOT);
}

/* Has the page copied back after this request. Then it becomes watched or hot (copy_watched). */
static void copy_once(hot_state *s, char *page, size_t number) {
    s->once[s->once_count++] = (hot_page){page, (uint32_t)number, 0};
}

static bool can_watch(const hot_state *s) {
    return s->watch.works && s->watch.count + s->once_count < WATCHED_MAX;
}

/* If the kernel keeps the pages, a request is the cause, for example by locked memory
 * (mlockall). */
static void drop(char *from, const char *to) {
    if (from < to) {
        samovar_must(syscall(SYS_madvise, from, (size_t)(to - from), MADV_DONTNEED) == 0,
                     LEAVE_MAPPING);
    }
}

static bool drops_free(const hot_state *s) {
    return s->rollback % DROP_FREE_EVERY == DROP_FREE_EVERY - 1;
}

/* Returns true if the page was dropped at most `count` rollbacks ago. */
static bool was_dropped_within(const hot_state *s, const page_note *known, uint32_t count) {
    return (uint16_t)((uint16_t)s->rollback - known->dropped_at) <= count;
}

/* A page that is unchanged may still have been written, with the same content. If it is written
 * again soon after it was dropped, it stays longer next time. If it comes back late, it stays
 * for a shorter time. */
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

/* Where many pages are hot, a page becomes hot only if it is written all the time. The cost of
 * the other pages is left to the requests that write them. */
static bool deserves_to_be_hot(const hot_state *s, const page_note *known) {
    return s->count <= MANY_PAGES || was_dropped_within(s, known, SOON_MANY);
}

/* Handles a page that was not known to be written. Returns true if it goes back to the kernel. */
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

/* Handles a page that was watched until this request. */
static void note_rewritten(hot_state *s, char *page, size_t number) {
    learn_patience(s, &s->pages[number]);
    s->watch.count--;
    copy_once(s, page, number);
}

/* Returns true if the page goes back to the kernel. */
static bool note_page(hot_state *s, char *page, size_t number) {
    page_note *known = &s->pages[number];
    switch (known->state & PAGE_STATE) {
    case PAGE_NEW:
    case PAGE_SEEN:
        s->search.fresh++;
        return note_fresh(s, page, number);
    case PAGE_FREE:
        s->search.fresh += !(known->state & PAGE_FILLED);
        known->state = drops_free(s) ? PAGE_FREE : PAGE_FREE | PAGE_FILLED;
        return drops_free(s);
    case PAGE_WATCHED:
        s->search.fresh++;
        note_rewritten(s, page, number);
        return false;
    default:
        return false;
    }
}

/* Handles written pages of one region. Pages are dropped in runs. */
static void note_written(void *state, const image_region *r, char *from, const char *to) {
    hot_state *s = state;
    char *run = from;
    for (char *page = from; page < to; page += IMAGE_PAGE) {
        if (!note_page(s, page, samovar_page_number(r, page))) {
            drop(run, page);
            run = page + IMAGE_PAGE;
        }
    }
    drop(run, to);
}

static void note_free(void *state, const image_region *r, char *from, const char *to) {
    hot_state *s = state;
    for (const char *page = from; page < to; page += IMAGE_PAGE) {
        set_state(s, samovar_page_number(r, page), PAGE_FREE);
    }
}

static void find_free(void *state, char *from, const char *to) {
    samovar_visit_range(0, (uintptr_t)from, (uintptr_t)to, note_free, state);
}

/* ---- the start -------------------------------------------------------------------------- */

static void begin_pages(hot_state *s, size_t pages) {
    for (size_t i = 0; i < pages; i++) {
        s->pages[i].patience = PATIENCE;
        s->own.sources[i] = samovar_image->view + i * IMAGE_PAGE;
    }
}

bool samovar_hot_open(hot_state *s) {
    samovar_watch_open(&s->watch);
    return samovar_search_open(&s->search);
}

bool samovar_hot_start(hot_state *s) {
    const size_t pages = samovar_image->bytes / IMAGE_PAGE;
    s->hot = samovar_shared_memory(pages * sizeof *s->hot);
    s->pages = samovar_shared_memory(pages * sizeof *s->pages);
    s->once = samovar_shared_memory(pages * sizeof *s->once);
    s->own.sources = samovar_shared_memory(pages * sizeof *s->own.sources);
    s->own.search = &s->search;
    if (!s->hot || !s->pages || !s->own.sources || !s->once || !samovar_bulk_start(&s->bulk)) {
        return false;
    }
    samovar_search_start(&s->search);
    begin_pages(s, pages);
    samovar_heap_close();
    samovar_heap_for_each_free(find_free, s);
    if (!samovar_own_take(&s->own)) {
        return false;
    }
    s->faults = s->own.faults;
    if (s->search.has_pagemap_scan) {
        samovar_watch_start(&s->watch);
    }
    s->search.watches = s->watch.works;
    return true;
}

/* Returns the number of comparisons in a row that may find this page unchanged: few if many
 * pages are hot, unless it was dropped and needed again before. */
static uint32_t patience(const page_note *known, uint32_t hot) {
    if (hot <= MANY_PAGES) {
        return 1U << known->patience;
    }
    const bool comes_back = known->patience > PATIENCE;
    return comes_back ? 1U << PATIENCE : hot > MOST_PAGES ? 1 : 2;
}

/* Returns true if the page is no longer changed. A page that was hot without need several times
 * becomes new again. */
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

/* Copies the hot pages of one group, with its part of the comparisons. Also compacts its part of
 * the list, whose next free place is `kept`. */
static uint32_t compare_group(hot_state *s, uint32_t from, uint32_t to, uint32_t kept,
                              bool in_turn) {
    const uint32_t hot = s->count;
    const bool watches = can_watch(s);
    char *run = NULL, *run_end = NULL;
    for (uint32_t i = from; i < to; i++) {
        hot_page h = s->hot[i];
        if (memcmp(h.page, s->own.sources[h.number], IMAGE_PAGE) != 0) {
            memcpy(h.page, s->own.sources[h.number], IMAGE_PAGE);
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

/* Copies part of a list of `all` pages. */
static void copy_pages(const hot_state *s, const hot_page *list, uint32_t count, uint32_t all) {
    uint32_t i = 0;
    for (; all > MOST_PAGES && i + 1 < count; i += 2) {
        samovar_copy_two((page_copy){list[i].page, s->own.sources[list[i].number]},
                         (page_copy){list[i + 1].page, s->own.sources[list[i + 1].number]});
    }
    for (; i < count; i++) {
        memcpy(list[i].page, s->own.sources[list[i].number], IMAGE_PAGE);
    }
    samovar_copies_done();
}

/* Where most pages are hot, a group without changes indicates a small request among large ones.
 * Then the next group is compared, too. */
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

/* Returns true if copying the page each time is cheaper. `many`: the request has written many
 * pages. For requests that are known to be large, this is true only for pages that consecutive
 * requests write. */
static bool is_written_often(const hot_state *s, const page_note *known, bool many) {
    if (!many) {
        return (known->state & PAGE_STATE) == PAGE_SEEN ||
               was_dropped_within(s, known, SOON_WATCHED);
    }
    if (samovar_bulk_tells(&s->bulk)) {
        return !(known->state & PAGE_COOLED) && was_dropped_within(s, known, 1);
    }
    return was_dropped_within(s, known, SOON_WATCHED_MANY);
}

static bool lies_in(const image_region *r, const char *from, const char *to) {
    return r && r->at <= from && to <= r->at + r->len;
}

/* Returns true if a run may be extended to this page, across a few pages that were never
 * written. Watching those costs nothing, and one call less is worth ten pages. */
static bool may_bridge(const hot_state *s, const page_run *run, const hot_page *h,
                       const image_region **region) {
    const size_t gap = (size_t)(h->page - run->end) / IMAGE_PAGE;
    if (!run->end || h->page <= run->end || gap > GAP_PAGES_MAX) {
        return false;
    }
    if (!lies_in(*region, run->end, h->page)) {
        *region = samovar_region_of(run->end);
    }
    if (!lies_in(*region, run->end, h->page)) {
        return false;
    }
    for (uint32_t number = h->number - (uint32_t)gap; number < h->number; number++) {
        if ((s->pages[number].state & PAGE_STATE) > PAGE_SEEN) {
            return false;
        }
    }
    return true;
}

/* Pages of a list, in its order. */
typedef struct {
    page_run run;
    const image_region *region;
} change_state;
typedef void change_next(watch_state *w, page_run *run, char *page);

static void change(hot_state *s, change_state *c, const hot_page *h, change_next *next) {
    if (may_bridge(s, &c->run, h, &c->region)) {
        c->run.end = h->page;
    }
    next(&s->watch, &c->run, h->page);
}

/* Copies back pages that are written occasionally. They were found in order, so neighbours need
 * one call. */
static void copy_watched(hot_state *s) {
    const bool many = s->count + s->once_count > MANY_PAGES;
    change_state changes = {0};
    copy_pages(s, s->once, s->once_count, s->once_count);
    for (uint32_t i = 0; i < s->once_count; i++) {
        const hot_page *h = &s->once[i];
        page_note *known = &s->pages[h->number];
        if (is_written_often(s, known, many)) {
            make_hot(s, h->page, h->number);
            continue;
        }
        known->state = PAGE_WATCHED;
        known->dropped_at = (uint16_t)s->rollback;
        if (many && !known->in_bulk) {
            known->in_bulk = samovar_bulk_add(&s->bulk, *h);
        }
        change(s, &changes, h, samovar_watch_next);
    }
    samovar_watch_next(&s->watch, &changes.run, NULL);
    s->once_count = 0;
}

/* ---- pages of large requests --------------------------------------------------------------- */

/* Prepares a large request: its pages are not watched. Pages that have become hot or were
 * dropped are removed from the list. */
static void expect(hot_state *s) {
    bulk_state *b = &s->bulk;
    change_state changes = {0};
    uint32_t kept = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        const hot_page h = b->list[i];
        page_note *known = &s->pages[h.number];
        known->in_bulk = (known->state & PAGE_STATE) == PAGE_WATCHED;
        if (known->in_bulk) {
            set_state(s, h.number, PAGE_HOT);
            change(s, &changes, &h, samovar_unwatch_next);
            b->list[kept++] = h;
        }
    }
    samovar_unwatch_next(&s->watch, &changes.run, NULL);
    b->count = kept;
    b->expected = true;
}

void samovar_hot_expect(hot_state *s, uint32_t kind) {
    if (samovar_bulk_begins(&s->bulk, kind)) {
        expect(s);
    }
}

bool samovar_hot_wants_kind(const hot_state *s) {
    return s->watch.works && s->count + s->watch.count >= BULK_PAGES_MIN;
}

/* Compares one page of each group. Returns the number of pages that were probably written. */
static uint32_t compare_expected(const hot_state *s) {
    const bulk_state *b = &s->bulk;
    uint32_t written = 0;
    for (uint32_t from = 0; from < b->count; from += COMPARE_GROUP) {
        const uint32_t left = b->count - from, len = left < COMPARE_GROUP ? left : COMPARE_GROUP;
        const hot_page *one = &b->list[from + s->rollback % len];
        const bool changed = memcmp(one->page, s->own.sources[one->number], IMAGE_PAGE) != 0;
        b->list[from].unchanged = changed ? 0 : b->list[from].unchanged + 1;
        written += changed ? len : 0;
    }
    return written;
}

/* Watches the pages again. Groups that large requests have not written for some time are removed
 * from the list. */
static void watch_expected(hot_state *s) {
    bulk_state *b = &s->bulk;
    change_state changes = {0};
    uint32_t kept = 0;
    bool stays = true;
    for (uint32_t i = 0; i < b->count; i++) {
        const hot_page h = b->list[i];
        page_note *known = &s->pages[h.number];
        stays = i % COMPARE_GROUP == 0 ? h.unchanged < BULK_PATIENCE : stays;
        known->state = PAGE_WATCHED;
        known->dropped_at = (uint16_t)s->rollback;
        known->in_bulk = stays;
        change(s, &changes, &h, samovar_watch_next);
        if (stays) {
            b->list[kept++] = h;
        }
    }
    samovar_watch_next(&s->watch, &changes.run, NULL);
    b->count = kept;
}

/* Copies back the pages of large requests. Returns the number of those that were written. */
static uint32_t copy_expected(hot_state *s) {
    bulk_state *b = &s->bulk;
    if (!b->expected) {
        return 0;
    }
    const uint32_t written = compare_expected(s);
    copy_pages(s, b->list, b->count, b->count);
    watch_expected(s);
    b->expected = false;
    return written;
}

/* Returns true for a watched page that was not written for a long time. Its memory goes back to
 * the kernel. */
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
            const size_t number = samovar_page_number(r, page);
            if (is_unused(s, number)) {
                samovar_unwatch(&s->watch, page, page + IMAGE_PAGE);
                drop(page, page + IMAGE_PAGE);
                set_state(s, number, PAGE_NEW);
            }
        }
    }
}

/* Returns true if only this thread has run in its memory. Faults of other threads and processes
 * are not counted here. */
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
        s->once_count = 0;
        samovar_must(
            samovar_search(&s->search, by_count ? now - s->faults : LONG_MAX, note_written, s),
            LEAVE_MAPPING);
        s->faults = now;
        s->threads_started = s->others_wrote = false;
    }
    const bool is_known = s->count <= MANY_PAGES;
    copy_hot(s);
    const uint32_t written = s->once_count + copy_expected(s);
    if (is_known) {
        samovar_bulk_ends(&s->bulk, written);
    }
    copy_watched(s);
    s->bulk.kind = NULL;
    if (drops_free(s)) {
        drop_unused(s);
    }
}
