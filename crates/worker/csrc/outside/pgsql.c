/* The protocol on a kept connection to PostgreSQL. */
#define _GNU_SOURCE
#include "outside/language.h"
#include "outside/hash.h"
#include "outside/sql.h"
#include <string.h>
#include <strings.h>

/* postgresql.org, Frontend/Backend Protocol: a letter, then a length (4) that includes itself
 * and the rest. */
enum { PG_HEADER = 5 };

static uint32_t big_endian(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Adds or removes the name of a prepared statement. A server that refuses reports an error
 * ('E'). */
static void pg_toggle(talk_state *t, const char *name, size_t len) {
    t->statements_asked ^= samovar_hash(name, len);
}

static void pg_query(talk_state *t, const char *text, size_t len) {
    static const char deallocate[] = "DEALLOCATE ";
    const size_t prefix = sizeof deallocate - 1;
    len = strnlen(text, len);
    t->questions++;
    if (!samovar_sql_is_plain(text, len, false)) {
        t->changed = true;
    } else if (len > prefix && strncasecmp(text, deallocate, prefix) == 0) {
        const char *name = text + prefix;
        len -= prefix;
        if (len > 2 && name[0] == '"' && name[len - 1] == '"') {
            name++;
            len -= 2;
        }
        pg_toggle(t, name, len);
    }
}

static void pg_parse(talk_state *t, const char *name, size_t len) {
    const size_t name_len = strnlen(name, len);
    if (name_len == len) {
        t->changed = true;
        return;
    }
    const char *text = name + name_len + 1;
    t->changed |= !samovar_sql_is_plain(text, strnlen(text, len - name_len - 1), false);
    if (name_len > 0) {
        pg_toggle(t, name, name_len);
    }
}

/* Handles a whole message, or the start of one that is too long to be kept. */
static void pg_asked(talk_state *t, char kind, const char *body, size_t len, bool whole) {
    switch (kind) {
    case 'Q':
        pg_query(t, body, len);
        t->changed |= !whole;
        return;
    case 'P':
        pg_parse(t, body, len);
        t->changed |= !whole;
        return;
    case 'C':
        if (len > 2 && body[0] == 'S' && body[1]) {
            pg_toggle(t, body + 1, strnlen(body + 1, len - 1));
        }
        return;
    case 'S':
        t->questions++;
        return;
    case 'B':
    case 'D':
    case 'E':
    case 'H':
        return;
    default:
        t->changed = true;
    }
}

static void pg_sent(talk_state *t, const uint8_t *at, size_t len) {
    talk_reader *r = &t->sent;
    for (; len > 0; at++, len--) {
        if (r->have < r->room) {
            r->bytes[r->have] = (char)*at;
        }
        r->have++;
        if (r->have == PG_HEADER) {
            r->left = big_endian((const uint8_t *)r->bytes + 1);
            if (r->left < 4) {
                t->changed = true;
                r->left = 4;
            }
        }
        if (r->have >= PG_HEADER && r->have == (uint64_t)r->left + 1) {
            const size_t known = r->have < r->room ? r->have : r->room;
            pg_asked(t, r->bytes[0], r->bytes + PG_HEADER, known - PG_HEADER, known == r->have);
            r->have = 0;
        }
    }
}

static void pg_responded(talk_state *t, char kind, char first) {
    switch (kind) {
    case 'E':
        t->statements_asked = 0;
        return;
    case 'Z':
        t->statements ^= t->statements_asked;
        t->statements_asked = 0;
        t->questions--;
        t->in_transaction = first != 'I';
        return;
    case 'A': /* A notification, or a changed setting. */
    case 'S':
    case 'G':
    case 'H':
    case 'W':
        t->changed = true;
        return;
    default:
        return;
    }
}

static void pg_received(talk_state *t, const uint8_t *at, size_t len) {
    talk_reader *r = &t->received;
    while (len > 0) {
        if (r->have < PG_HEADER + 1) {
            r->bytes[r->have++] = (char)*at++;
            len--;
            if (r->have == PG_HEADER) {
                r->left = big_endian((const uint8_t *)r->bytes + 1) - 4;
            }
            if (r->have < PG_HEADER || (r->have == PG_HEADER && r->left > 0)) {
                continue;
            }
            if (r->have == PG_HEADER + 1) {
                r->left--;
            } else {
                r->bytes[PG_HEADER] = 0;
                r->have++;
            }
            pg_responded(t, r->bytes[0], r->bytes[PG_HEADER]);
        }
        const size_t part = len < r->left ? len : r->left;
        at += part;
        len -= part;
        r->left -= (uint32_t)part;
        if (r->left == 0) {
            r->have = 0;
        }
    }
}

const talk_reading samovar_reads_pgsql = {pg_sent, pg_received};
