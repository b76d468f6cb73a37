/* Finds out which requests are large: see bulk.h. */
#include "memory/bulk.h"
#include "boundary.h"
#include "memory/watch.h"

/* After a wrong prediction, this number of requests of a kind must be alike before the kind is
 * trusted again. */
enum { TRUST_MIN = 3 };

bool samovar_bulk_start(bulk_state *b) {
    b->list = samovar_shared_memory(WATCHED_MAX * sizeof *b->list);
    return b->list;
}

static bool is_believed(const request_kind *kind) {
    return kind && kind->trust >= TRUST_MIN;
}

bool samovar_bulk_begins(bulk_state *b, uint32_t number) {
    request_kind *kind = &b->kinds[number % BULK_KINDS];
    if (kind->number != number) {
        *kind = (request_kind){.number = number, .is_new = true};
    }
    b->kind = kind;
    return b->count > 0 && is_believed(kind) && kind->is_large;
}

/* A new kind is trusted after its first request, because most web pages keep their size. */
static void learn(request_kind *kind, bool is_large) {
    if (kind->is_new) {
        kind->trust = TRUST_MIN;
    } else if (kind->is_large != is_large) {
        kind->trust = 0;
    } else if (kind->trust < TRUST_MIN) {
        kind->trust++;
    }
    kind->is_new = false;
    kind->is_large = is_large;
}

void samovar_bulk_ends(bulk_state *b, uint32_t pages) {
    if (b->kind) {
        learn(b->kind, pages >= BULK_PAGES_MIN);
    }
}

bool samovar_bulk_tells(const bulk_state *b) {
    return is_believed(b->kind);
}

bool samovar_bulk_add(bulk_state *b, hot_page page) {
    if (b->count == WATCHED_MAX) {
        return false;
    }
    page.unchanged = 0;
    b->list[b->count++] = page;
    return true;
}
