/* finish: encodes the accounting of a request, in the grammar of crates/insight/src/report.rs.
 *
 * Entries that do not fit are counted, and the count always fits. */
#include "insight/report.h"
#include "insight/statements.h"
#include "insight/timeline.h"
#include <stdlib.h>
#include <string.h>

/* The same values as in report.rs. */
typedef enum {
    ENTRY_ROUTE = 1,
    ENTRY_WAIT = 2,
    ENTRY_TIMER = 3,
    ENTRY_TAG = 4,
    ENTRY_PLACE = 5,
    ENTRY_DROPPED = 6,
    ENTRY_BOOT = 7,
    ENTRY_ERROR = 8,
    ENTRY_STATEMENT = 9,
    ENTRY_SPANS = 10,
    ENTRY_CPU_DELAY = 11
} entry_tag;

enum { SERVER_ERROR = 500 };
enum { HEAD_BYTES = 3, DROPPED_BYTES = HEAD_BYTES + 4, SPAN_BYTES = 11, NO_NUMBER = 0xff };
_Static_assert(WAITS_MAX + WAIT_KINDS < NO_NUMBER && STATEMENTS_MAX + 1 < NO_NUMBER, "a byte");

typedef struct {
    uint8_t *at;
    size_t len;
    uint32_t dropped;
    size_t reserved; /* bytes at the end for a later entry */
    /* Numbers of the entries of waits and statements, by their index; NO_NUMBER: not written. */
    uint8_t wait_numbers[WAITS_MAX + WAIT_KINDS], statement_numbers[STATEMENTS_MAX + 1];
    uint8_t waits, statements;
} report_writer;

/* ---- numbers, little-endian, and texts ----------------------------------------------------- */

static void put_number(report_writer *w, uint64_t number, size_t bytes) {
    uint8_t *to = w->at + w->len;
    for (size_t i = 0; i < bytes; i++) {
        to[i] = (uint8_t)(number >> (8 * i));
    }
    w->len += bytes;
}

static void put_text(report_writer *w, const short_name *text) {
    memcpy(w->at + w->len, text->text, text->len);
    w->len += text->len;
}

static void put_name(report_writer *w, const short_name *name) {
    put_number(w, name->len, 1);
    put_text(w, name);
}

static void put_long_text(report_writer *w, const char *text, size_t len) {
    put_number(w, len, 2);
    memcpy(w->at + w->len, text, len);
    w->len += len;
}

/* Begins an entry with `bytes` of payload. Returns false if there is no room for it. */
static bool begin(report_writer *w, entry_tag tag, size_t bytes) {
    if (w->len + HEAD_BYTES + bytes > SAMOVAR_REPORT_BYTES - DROPPED_BYTES - w->reserved) {
        w->dropped++;
        return false;
    }
    put_number(w, tag, 1);
    put_number(w, bytes, 2);
    return true;
}

/* ---- entries ------------------------------------------------------------------------------- */

static void write_text(report_writer *w, entry_tag tag, const short_name *text) {
    if (text->len > 0 && begin(w, tag, text->len)) {
        put_text(w, text);
    }
}

static void write_boot(report_writer *w, uint64_t ago_ns, uint64_t ns) {
    if (ns > 0 && begin(w, ENTRY_BOOT, 16)) {
        put_number(w, ago_ns, 8);
        put_number(w, ns, 8);
    }
}

/* Writes the boot of the worker, before its first request, and that of a script that runs as a
 * whole, in each request. */
static void write_boots(report_writer *w, const request_accounting_state *l) {
    write_boot(w, l->worker_ago_ns, l->worker_boot_ns);
    if (l->booted_ns > l->taken_ns) {
        write_boot(w, 0, l->booted_ns - l->taken_ns);
    }
}

static void write_tags(report_writer *w, const request_accounting_state *l) {
    for (uint32_t i = 0; i < l->tag_count; i++) {
        const request_tag *tag = &l->tags[i];
        if (begin(w, ENTRY_TAG, 2u + tag->name.len + tag->value.len)) {
            put_name(w, &tag->name);
            put_name(w, &tag->value);
        }
    }
}

static void write_waits(report_writer *w, const request_accounting_state *l, uint32_t from,
                        uint32_t count) {
    for (uint32_t i = from; i < from + count; i++) {
        const peer_waits *waits = &l->waits[i];
        if (waits->times > 0 && begin(w, ENTRY_WAIT, 13u + waits->peer.len)) {
            w->wait_numbers[i] = w->waits++;
            put_number(w, waits->kind, 1);
            put_number(w, waits->times, 4);
            put_number(w, waits->ns, 8);
            put_text(w, &waits->peer);
        }
    }
}

static void write_timers(report_writer *w, const request_accounting_state *l) {
    for (uint32_t i = 0; i < l->timer_count; i++) {
        const timer_sum *timer = &l->timers[i];
        if (begin(w, ENTRY_TIMER, 28u + timer->len)) {
            put_number(w, timer->hits, 4);
            put_number(w, timer->wall_ns, 8);
            put_number(w, timer->user_ns, 8);
            put_number(w, timer->system_ns, 8);
            memcpy(w->at + w->len, timer->tags, timer->len);
            w->len += timer->len;
        }
    }
}

static void write_origin(report_writer *w, error_kind kind, const error_origin *origin,
                         const char *stack, size_t stack_len) {
    const size_t bytes =
        11u + origin->class.len + origin->file.len + origin->message_len + stack_len;
    if (!begin(w, ENTRY_ERROR, bytes)) {
        return;
    }
    put_number(w, kind, 1);
    put_number(w, origin->line, 4);
    put_name(w, &origin->class);
    put_name(w, &origin->file);
    put_long_text(w, origin->message, origin->message_len);
    put_long_text(w, stack, stack_len);
}

static void write_error(report_writer *w, error_kind kind, const error_record *error) {
    write_origin(w, kind, &error->origin, error->stack, error->stack_len);
    for (uint32_t n = 0; n < error->previous_count; n++) {
        write_origin(w, ERROR_PREVIOUS, &error->previous[n], "", 0);
    }
}

/* The first of them is the reason for the end of the request, so they precede the waits. A fatal
 * error, and an exception that the application reports, are known reasons. Without one the reason
 * for a 5xx is the exception that was thrown last. */
static void write_errors(report_writer *w, const request_accounting_state *l) {
    for (uint32_t i = 0; i < l->error_count; i++) {
        write_error(w, l->errors[i].kind, &l->errors[i]);
    }
    if (l->has_thrown && l->error_count == 0 && l->status >= SERVER_ERROR) {
        write_error(w, l->thrown_is_unhandled ? ERROR_UNCAUGHT : ERROR_RENDERED, &l->thrown);
    }
}

/* ---- statements ---------------------------------------------------------------------------- */

/* Writes a statement with the position that has executed it most often. */
static void write_statement(report_writer *w, const statement_record *record) {
    static const statement_place nowhere = {.line = 0};
    const statement_place *place = &nowhere;
    for (uint32_t i = 0; i < record->place_count; i++) {
        place = record->places[i].calls > place->calls ? &record->places[i] : place;
    }
    size_t len;
    const char *text = samovar_statement_text_of(record, &len);
    if (begin(w, ENTRY_STATEMENT, 30u + place->name.len + len)) {
        w->statement_numbers[record - samovar_statements->records] = w->statements++;
        put_number(w, record->kind, 1);
        put_number(w, record->calls, 4);
        put_number(w, record->ns, 8);
        put_number(w, record->rows, 8);
        put_number(w, place->calls, 4);
        put_number(w, place->line, 4);
        put_name(w, &place->name);
        memcpy(w->at + w->len, text, len);
        w->len += len;
    }
}

static int by_time(const void *a, const void *b) {
    const statement_record *const *first = a, *const *second = b;
    return ((*first)->ns < (*second)->ns) - ((*first)->ns > (*second)->ns);
}

/* Returns the maximum number of bytes of a statement's entry. */
static size_t room_for(const statement_record *record) {
    size_t len;
    samovar_statement_text_of(record, &len);
    return HEAD_BYTES + 30u + NAME_BYTES + len;
}

/* Writes the statements. If some may not fit, those that took longest come first. */
static void write_statements(report_writer *w) {
    const statements_state *s = samovar_statements;
    const statement_record *sorted[STATEMENTS_MAX + 1];
    uint32_t count = 0;
    size_t bytes = w->len + w->reserved + DROPPED_BYTES;
    for (uint32_t i = 0; s && i < s->record_count; i++) {
        if (s->records[i].calls > 0) {
            sorted[count++] = &s->records[i];
            bytes += room_for(&s->records[i]);
        }
    }
    if (s && s->has_others && s->records[STATEMENTS_MAX].calls > 0) {
        sorted[count++] = &s->records[STATEMENTS_MAX];
    }
    if (bytes > SAMOVAR_REPORT_BYTES) {
        qsort(sorted, count, sizeof sorted[0], by_time);
    }
    for (uint32_t i = 0; i < count; i++) {
        write_statement(w, sorted[i]);
    }
}

/* ---- the timeline -------------------------------------------------------------------------- */

static uint64_t microseconds(uint64_t ns) {
    return MIN(ns / 1000, UINT32_MAX);
}

/* Writes the spans of the waits and statements that were written. Spans that do not fit are
 * dropped: their times are in the sums. */
static void write_spans(report_writer *w, const timeline_state *t) {
    const size_t room = SAMOVAR_REPORT_BYTES - DROPPED_BYTES - HEAD_BYTES - w->len;
    const uint32_t count = MIN(t->count, room / SPAN_BYTES);
    uint32_t written = 0;
    const size_t head = w->len;
    if (count == 0 || !begin(w, ENTRY_SPANS, 0)) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        const timeline_span *span = &t->spans[i];
        const uint8_t number = span->kind == SPAN_WAIT ? w->wait_numbers[span->index]
                                                       : w->statement_numbers[span->index];
        if (number != NO_NUMBER && span->from_ns >= t->taken_ns) {
            put_number(w, span->kind, 1);
            put_number(w, number, 2);
            put_number(w, microseconds(span->from_ns - t->taken_ns), 4);
            put_number(w, microseconds(span->ns), 4);
            written++;
        }
    }
    const size_t end = w->len;
    w->len = head + 1;
    put_number(w, (uint64_t)written * SPAN_BYTES, 2);
    w->len = end;
}

static void write_timeline(report_writer *w) {
    const uint64_t delay_ns = samovar_timeline_delay_ns();
    if (delay_ns > 0 && begin(w, ENTRY_CPU_DELAY, 8)) {
        put_number(w, delay_ns, 8);
    }
    if (samovar_timeline) {
        write_spans(w, samovar_timeline);
    }
}

size_t samovar_report_write(request_accounting_state *l) {
    report_writer w;
    w.at = l->report;
    w.len = w.reserved = 0;
    w.dropped = l->dropped;
    w.waits = w.statements = 0;
    samovar_statements_close();
    const uint32_t spans = samovar_timeline ? samovar_timeline->count : 0;
    if (spans > 0) {
        memset(w.wait_numbers, NO_NUMBER, sizeof w.wait_numbers);
        memset(w.statement_numbers, NO_NUMBER, sizeof w.statement_numbers);
    }
    write_text(&w, ENTRY_ROUTE, &l->route);
    write_text(&w, ENTRY_PLACE, &l->place);
    write_boots(&w, l);
    write_errors(&w, l);
    write_tags(&w, l);
    write_waits(&w, l, 0, l->wait_count);
    for (uint32_t kind = 0; kind < WAIT_KINDS && l->other_kinds; kind++) {
        write_waits(&w, l, WAITS_MAX + kind, l->other_kinds >> kind & 1);
    }
    write_timers(&w, l);
    w.reserved = spans > 0 ? HEAD_BYTES + spans * SPAN_BYTES : 0;
    write_statements(&w);
    w.reserved = 0;
    write_timeline(&w);
    if (w.dropped > 0) {
        put_number(&w, ENTRY_DROPPED, 1);
        put_number(&w, 4, 2);
        put_number(&w, w.dropped, 4);
    }
    return w.len;
}
