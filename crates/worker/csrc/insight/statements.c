/* The tables of statements: texts, and the records of the current request.
 *
 * Calls of several tasks, or of fibers, overlap and end in any order, so a call is identified by
 * the number of its request and the index of its record. A call that a fatal error leaves is still
 * in the list of open ones when the report is written. */
#include "insight/statements.h"
#include "insight/clock.h"
#include "insight/timeline.h"
#include "boundary.h"
#include <string.h>

statements_state *samovar_statements;

enum { FRAMES_SEARCHED = 64, SOURCE_HASH = 16 };
static const char other[] = "(other)";

void samovar_statements_install(void) {
    samovar_statements = samovar_shared_memory(sizeof *samovar_statements);
    if (samovar_statements) {
        samovar_statements->seed = samovar_now_ns() | 1;
    }
}

static void forget_texts(statements_state *s) {
    memset(s->sources, 0, sizeof s->sources);
    memset(s->slots, 0, sizeof s->slots);
    s->text_count = s->text_bytes = 0;
    s->epoch++;
}

void samovar_statements_open(void) {
    statements_state *s = samovar_statements;
    if (!s) {
        return;
    }
    s->request++;
    s->record_count = 0;
    s->has_others = false;
    if (s->text_count > KNOWN_TEXTS / 4 * 3 || s->text_bytes > KNOWN_TEXT_BYTES / 4 * 3) {
        forget_texts(s);
    }
}

/* ---- texts --------------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t hash, uint64_t part) {
    const unsigned __int128 product = (unsigned __int128)(hash ^ part) * 0x9e3779b97f4a7c15u;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t samovar_statements_hash(const char *text, size_t len, uint64_t more) {
    uint64_t hash = mixed(samovar_statements->seed + len, more + 1), part;
    for (; len >= sizeof part; len -= sizeof part, text += sizeof part) {
        memcpy(&part, text, sizeof part);
        hash = mixed(hash, part);
    }
    part = 0;
    memcpy(&part, text, len);
    return mixed(hash, part);
}

/* Returns the index of a normalised text, which is added if it is new. */
static uint32_t index_of_text(statements_state *s, statement_kind kind, const char *text,
                              size_t len) {
    const uint64_t hash = samovar_statements_hash(text, len, kind);
    for (uint32_t n = 0; n < TEXT_SLOTS; n++) {
        uint16_t *slot = &s->slots[(hash + n) & (TEXT_SLOTS - 1)];
        if (*slot > 0) {
            if (s->texts[*slot - 1].hash == hash) {
                return *slot - 1u;
            }
            continue;
        }
        if (s->text_count == KNOWN_TEXTS || s->text_bytes + len > KNOWN_TEXT_BYTES) {
            return NO_TEXT;
        }
        const size_t bytes = samovar_utf8_copy(s->bytes + s->text_bytes, len, text, len);
        s->texts[s->text_count] =
            (known_text){.hash = hash, .at = s->text_bytes, .len = (uint16_t)bytes};
        s->text_bytes += bytes;
        *slot = (uint16_t)++s->text_count;
        return s->text_count - 1;
    }
    return NO_TEXT;
}

uint32_t samovar_statements_plain(statement_kind kind, const char *text, size_t len) {
    return index_of_text(samovar_statements, kind, text, MIN(len, STATEMENT_BYTES));
}

/* PHP knows the hash of a literal of the source, and of the text of a prepared statement. Texts
 * with the same hash would be taken for each other, which shows a wrong normal form, but no
 * literal. */
static uint64_t hash_of_source(const zend_string *text, sql_dialect dialect) {
    return ZSTR_H(text)
               ? mixed(samovar_statements->seed + ZSTR_LEN(text) + dialect, ZSTR_H(text))
               : samovar_statements_hash(ZSTR_VAL(text), ZSTR_LEN(text), SOURCE_HASH + dialect);
}

uint32_t samovar_statements_sql(const zend_string *text, sql_dialect dialect) {
    statements_state *s = samovar_statements;
    const uint64_t hash = hash_of_source(text, dialect);
    known_source *source = &s->sources[hash & (KNOWN_SOURCES - 1)];
    if (source->hash != hash) {
        char normal[STATEMENT_BYTES];
        const size_t bytes = samovar_normal_sql((const uint8_t *)ZSTR_VAL(text), ZSTR_LEN(text),
                                                dialect, (uint8_t *)normal, sizeof normal);
        *source =
            (known_source){.hash = hash, .text = index_of_text(s, STATEMENT_SQL, normal, bytes)};
    }
    return source->text;
}

uint32_t samovar_statements_http(const char *method, const char *url, size_t len) {
    char normal[STATEMENT_BYTES];
    const size_t bytes =
        samovar_normal_http((const uint8_t *)method, method ? strlen(method) : 0,
                            (const uint8_t *)url, len, (uint8_t *)normal, sizeof normal);
    return index_of_text(samovar_statements, STATEMENT_HTTP, normal, bytes);
}

void samovar_statements_remember(uint64_t key, uint32_t text) {
    statements_state *s = samovar_statements;
    s->prepared[key % PREPARED_MAX] = (prepared_text){.key = key, .epoch = s->epoch, .text = text};
}

uint32_t samovar_statements_remembered(uint64_t key) {
    static const char unknown[] = "(prepared before)";
    const prepared_text *p = &samovar_statements->prepared[key % PREPARED_MAX];
    return p->key == key && p->epoch == samovar_statements->epoch
               ? p->text
               : samovar_statements_plain(STATEMENT_SQL, unknown, sizeof unknown - 1);
}

const char *samovar_statement_text_of(const statement_record *record, size_t *len) {
    if (record->text >= KNOWN_TEXTS) {
        *len = sizeof other - 1;
        return other;
    }
    const known_text *text = &samovar_statements->texts[record->text];
    *len = text->len;
    return samovar_statements->bytes + text->at;
}

/* ---- positions ----------------------------------------------------------------------------- */

static bool ends_with(const zend_string *text, const char *end, size_t len) {
    return ZSTR_LEN(text) >= len && memcmp(ZSTR_VAL(text) + ZSTR_LEN(text) - len, end, len) == 0;
}

static bool is_in_library(const zend_string *file) {
    static const char vendor[] = "/vendor/", packages[] = "/usr/share/php/";
    static const char wordpress[] = "/wp-includes/class-wpdb.php";
    return memmem(ZSTR_VAL(file), ZSTR_LEN(file), vendor, sizeof vendor - 1) ||
           strncmp(ZSTR_VAL(file), packages, sizeof packages - 1) == 0 ||
           ends_with(file, wordpress, sizeof wordpress - 1);
}

/* Returns whether a file is of a library: the interesting position is that of its caller. */
static bool is_library(statements_state *s, const zend_string *file) {
    known_file *known = &s->files[((uintptr_t)file >> 4) & (KNOWN_FILES - 1)];
    if (known->file != file || known->request != s->request) {
        *known = (known_file){file, s->request, is_in_library(file)};
    }
    return known->is_library;
}

/* Returns the innermost frame of the application's code, or that of a library if there is none
 * among the inner ones. */
static const zend_execute_data *calling_frame(statements_state *s) {
    const zend_execute_data *first = NULL, *frame = EG(current_execute_data);
    for (int n = 0; frame && n < FRAMES_SEARCHED; frame = frame->prev_execute_data) {
        if (!frame->func || !ZEND_USER_CODE(frame->func->type)) {
            continue;
        }
        n++;
        if (!is_library(s, frame->func->op_array.filename)) {
            return frame;
        }
        first = first ? first : frame;
    }
    return first;
}

static uint32_t line_of(const zend_execute_data *frame) {
    return frame->opline ? frame->opline->lineno : 0;
}

static void name_place(statement_place *place) {
    const zend_string *file = place->file;
    const size_t cut = ZSTR_LEN(file) > NAME_BYTES ? ZSTR_LEN(file) - NAME_BYTES : 0;
    samovar_short_name(&place->name, ZSTR_VAL(file) + cut, ZSTR_LEN(file) - cut);
}

statement_place samovar_statement_here(void) {
    statement_place place = {0};
    const zend_execute_data *frame = calling_frame(samovar_statements);
    if (frame) {
        place.file = frame->func->op_array.filename;
        place.line = line_of(frame);
        name_place(&place);
    }
    return place;
}

/* Returns the index of a position in a record, which is added if it is new. STATEMENT_PLACES: it
 * has no room. */
static uint32_t add_place(statement_record *record, const zend_string *file, uint32_t line) {
    for (uint32_t i = 0; i < record->place_count; i++) {
        if (record->places[i].file == file && record->places[i].line == line) {
            return i;
        }
    }
    if (record->place_count == STATEMENT_PLACES) {
        return STATEMENT_PLACES;
    }
    statement_place *place = &record->places[record->place_count];
    place->file = file;
    place->line = line;
    place->calls = 0;
    place->name.len = 0;
    return record->place_count++;
}

/* The same for the current position. */
static uint32_t index_of_place(statements_state *s, statement_record *record) {
    const zend_execute_data *frame = calling_frame(s);
    if (!frame) {
        return STATEMENT_PLACES;
    }
    const uint32_t index = add_place(record, frame->func->op_array.filename, line_of(frame));
    if (index < STATEMENT_PLACES && record->places[index].name.len == 0) {
        name_place(&record->places[index]);
    }
    return index;
}

/* The same for a position that may be left, and whose file may be gone. */
static uint32_t index_of_known(statement_record *record, const statement_place *at) {
    if (!at->file) {
        return STATEMENT_PLACES;
    }
    const uint32_t index = add_place(record, at->file, at->line);
    if (index < STATEMENT_PLACES) {
        record->places[index].name = at->name;
    }
    return index;
}

/* ---- records ------------------------------------------------------------------------------- */

static statement_record *begin_record(statements_state *s, uint32_t index, statement_kind kind,
                                      uint32_t text) {
    statement_record *record = &s->records[index];
    record->text = text;
    record->kind = kind;
    record->calls = record->place_count = 0;
    record->ns = record->rows = 0;
    return record;
}

static uint32_t index_of_record(statements_state *s, statement_kind kind, uint32_t text) {
    if (text < KNOWN_TEXTS) {
        known_text *known = &s->texts[text];
        if (known->request == s->request) {
            return known->record;
        }
        if (s->record_count < STATEMENTS_MAX) {
            begin_record(s, s->record_count, kind, text);
            known->request = s->request;
            known->record = (uint16_t)s->record_count;
            return s->record_count++;
        }
    }
    if (!s->has_others) {
        s->has_others = true;
        begin_record(s, STATEMENTS_MAX, kind, NO_TEXT);
    }
    return STATEMENTS_MAX;
}

/* Lists a call until it ends. */
static void list_open(statements_state *s, statement_call *call) {
    call->open = 0;
    while (call->open < OPEN_MAX && s->open[call->open].from_ns > 0) {
        call->open++;
    }
    if (call->open < OPEN_MAX) {
        s->open[call->open] = *call;
        s->open_used = MAX(s->open_used, call->open + 1);
    }
}

void samovar_statement_begin(statement_call *call, statement_kind kind, uint32_t text,
                             bool continues) {
    statements_state *s = samovar_statements;
    call->request = s->request;
    call->continues = continues;
    call->record = index_of_record(s, kind, text);
    call->place = continues ? STATEMENT_PLACES : index_of_place(s, &s->records[call->record]);
    call->from_ns = samovar_now_ns();
    list_open(s, call);
}

void samovar_statement_rename(statement_call *call, statement_kind kind, uint32_t text,
                              const statement_place *at) {
    statements_state *s = samovar_statements;
    if (s && call->request == s->request) {
        call->record = index_of_record(s, kind, text);
        statement_record *record = &s->records[call->record];
        call->place = at ? index_of_known(record, at) : index_of_place(s, record);
    }
}

static void add_up(statements_state *s, const statement_call *call, uint64_t ns, uint32_t calls,
                   uint64_t rows) {
    statement_record *record = &s->records[call->record];
    record->calls += calls;
    record->ns += ns;
    record->rows += rows;
    if (call->place < record->place_count) {
        record->places[call->place].calls += calls;
    }
    samovar_timeline_add(SPAN_STATEMENT, call->record, call->from_ns, ns);
}

static void end_call(const statement_call *call, uint64_t ns, uint32_t calls, uint64_t rows) {
    statements_state *s = samovar_statements;
    if (!s || call->request != s->request) {
        return;
    }
    if (call->open < OPEN_MAX) {
        s->open[call->open].from_ns = 0;
    }
    add_up(s, call, ns, calls, rows);
}

void samovar_statement_end(const statement_call *call, uint32_t calls, uint64_t rows) {
    end_call(call, samovar_now_ns() - call->from_ns, calls, rows);
}

void samovar_statement_end_after(const statement_call *call, uint64_t ns) {
    end_call(call, ns, 1, 0);
}

void samovar_statements_close(void) {
    statements_state *s = samovar_statements;
    for (uint32_t i = 0; s && i < s->open_used; i++) {
        if (s->open[i].from_ns > 0) {
            add_up(s, &s->open[i], samovar_now_ns() - s->open[i].from_ns,
                   s->open[i].continues ? 0 : 1, 0);
            s->open[i].from_ns = 0;
        }
    }
    if (s) {
        s->open_used = 0;
        s->request++; /* Calls of tasks that end later belong to no request. */
    }
}
