/* pinba_get_data(): encodes the data of the request as a Pinba packet, in Protocol Buffers.
 *
 * Field numbers are those of Pinba's pinba.proto. Texts other than the names of the request are
 * stored in a dictionary and referenced by their position in it. */
#include "functions/pinba.h"
#include "sapi/sapi.h"
#include <zend_smart_str.h>
#include <stdio.h>

typedef enum {
    HOSTNAME = 1,
    SERVER_NAME = 2,
    SCRIPT_NAME = 3,
    REQUEST_COUNT = 4,
    DOCUMENT_SIZE = 5,
    MEMORY_PEAK = 6,
    REQUEST_TIME = 7,
    RU_UTIME = 8,
    RU_STIME = 9,
    TIMER_HIT_COUNT = 10,
    TIMER_VALUE = 11,
    TIMER_TAG_COUNT = 12,
    TIMER_TAG_NAME = 13,
    TIMER_TAG_VALUE = 14,
    DICTIONARY = 15,
    STATUS = 16,
    MEMORY_FOOTPRINT = 17,
    SCHEMA = 19,
    TAG_NAME = 20,
    TAG_VALUE = 21,
    TIMER_RU_UTIME = 22,
    TIMER_RU_STIME = 23
} packet_field;

/* Wire types. */
enum { VARINT = 0, BYTES = 2, FIXED32 = 5 };

typedef struct {
    smart_str out;
    HashTable words; /* positions in the dictionary */
} packet_writer;

/* ---- Protocol Buffers ---------------------------------------------------------------------- */

static void put_varint(packet_writer *w, uint64_t number) {
    while (number >= 0x80) {
        smart_str_appendc(&w->out, (char)(number | 0x80));
        number >>= 7;
    }
    smart_str_appendc(&w->out, (char)number);
}

static void put_key(packet_writer *w, packet_field field, unsigned type) {
    put_varint(w, (unsigned)field << 3 | type);
}

static void put_number(packet_writer *w, packet_field field, uint64_t number) {
    put_key(w, field, VARINT);
    put_varint(w, number);
}

static void put_seconds(packet_writer *w, packet_field field, double seconds) {
    const float value = (float)seconds;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(w, field, FIXED32);
    for (int i = 0; i < 4; i++) {
        smart_str_appendc(&w->out, (char)(bits >> (8 * i)));
    }
}

static void put_text(packet_writer *w, packet_field field, const char *text, size_t len) {
    put_key(w, field, BYTES);
    put_varint(w, len);
    smart_str_appendl(&w->out, text, len);
}

/* Writes the position of a text in the dictionary. A text that is missing is added. */
static void put_word(packet_writer *w, packet_field field, zend_string *word) {
    const zval *known = zend_hash_find(&w->words, word);
    zval place;
    if (!known) {
        ZVAL_LONG(&place, zend_hash_num_elements(&w->words));
        zend_hash_add(&w->words, word, &place);
        put_text(w, DICTIONARY, ZSTR_VAL(word), ZSTR_LEN(word));
        known = &place;
    }
    put_number(w, field, (uint64_t)Z_LVAL_P(known));
}

/* ---- the packet ---------------------------------------------------------------------------- */

static void put_name(packet_writer *w, packet_field field, const zend_string *name,
                     const char *otherwise) {
    const char *text = name ? ZSTR_VAL(name) : otherwise;
    put_text(w, field, text, name ? ZSTR_LEN(name) : strlen(text));
}

static void put_names(packet_writer *w) {
    const samovar_head *r = samovar_current;
    char host[HOST_BYTES];
    put_name(w, HOSTNAME, samovar_pinba.hostname, samovar_pinba_this_host(host));
    put_name(w, SERVER_NAME, samovar_pinba.server_name,
             r ? samovar_text(r, r->server_name) : "unknown");
    put_name(w, SCRIPT_NAME, samovar_pinba.script_name,
             r ? samovar_text(r, r->script_name) : "unknown");
    if (samovar_pinba.schema) {
        put_name(w, SCHEMA, samovar_pinba.schema, "");
    }
}

static void put_numbers(packet_writer *w) {
    const samovar_so_far so_far = samovar_request_so_far();
    put_number(w, REQUEST_COUNT, so_far.requests);
    put_number(w, DOCUMENT_SIZE, so_far.response_bytes);
    put_number(w, MEMORY_PEAK, zend_memory_peak_usage(1));
    put_seconds(w, REQUEST_TIME, samovar_pinba_request_time(&so_far));
    put_seconds(w, RU_UTIME, (double)so_far.cpu_ns / 1e9);
    put_seconds(w, RU_STIME, 0);
    const int status = SG(sapi_headers).http_response_code;
    put_number(w, STATUS, status > 0 ? (uint64_t)status : 200);
    put_number(w, MEMORY_FOOTPRINT, zend_memory_usage(1));
}

static void put_timer(packet_writer *w, const samovar_timer *t) {
    const timer_times times = samovar_timer_read(t);
    zend_string *name;
    zval *value;
    put_number(w, TIMER_HIT_COUNT, t->hits);
    put_seconds(w, TIMER_VALUE, (double)times.wall / 1e9);
    put_seconds(w, TIMER_RU_UTIME, (double)times.user / 1e9);
    put_seconds(w, TIMER_RU_STIME, (double)times.system / 1e9);
    put_number(w, TIMER_TAG_COUNT, zend_hash_num_elements(t->tags));
    ZEND_HASH_FOREACH_STR_KEY_VAL(t->tags, name, value) {
        put_word(w, TIMER_TAG_NAME, name);
        put_word(w, TIMER_TAG_VALUE, Z_STR_P(value));
    }
    ZEND_HASH_FOREACH_END();
}

static void put_tags(packet_writer *w) {
    zend_string *name;
    zval *value;
    if (samovar_pinba.has_tags) {
        ZEND_HASH_FOREACH_STR_KEY_VAL(&samovar_pinba.tags, name, value) {
            put_word(w, TAG_NAME, name);
            put_word(w, TAG_VALUE, Z_STR_P(value));
        }
        ZEND_HASH_FOREACH_END();
    }
}

zend_string *samovar_pinba_packet(bool only_stopped) {
    packet_writer w = {0};
    zend_hash_init(&w.words, 8, NULL, NULL, 0);
    put_names(&w);
    put_numbers(&w);
    for (const samovar_timer *t = samovar_timers_first(); t; t = t->next) {
        if (t->resource && !(only_stopped && t->is_running)) {
            put_timer(&w, t);
        }
    }
    put_tags(&w);
    zend_hash_destroy(&w.words);
    return smart_str_extract(&w.out);
}
