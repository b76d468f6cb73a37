/* The protocol on a kept connection to PostgreSQL. */
#define _GNU_SOURCE
#include "outside/language.h"
#include "outside/hash.h"
#include "outside/wire_format.h"
#include <string.h>

/* postgresql.org, Frontend/Backend Protocol: a letter, then a length (4) that includes itself
 * and the rest. */
enum { PG_HEADER = 5 };

static void pg_expect(talk_state *t, int kind, uint64_t statement) {
    if (t->pending_count == TALK_PENDING_MAX) {
        t->lost = true;
        return;
    }
    t->pending[t->pending_count].kind = kind;
    t->pending[t->pending_count++].statement = statement;
}

static bool pg_is_next(const talk_state *t, int kind) {
    return t->pending_count > 0 && (int)t->pending[0].kind == kind;
}

static void pg_drop(talk_state *t) {
    t->pending_count--;
    memmove(t->pending, t->pending + 1, t->pending_count * sizeof t->pending[0]);
}

/* The server has prepared or closed the statement of the oldest message. */
static void pg_done(talk_state *t, int kind) {
    if (!pg_is_next(t, kind)) {
        t->lost = true;
        return;
    }
    const uint64_t statement = t->pending[0].statement;
    t->statements ^= statement;
    t->changed |= statement != 0 && (!t->session || !t->session->knows_statements ||
                                     samovar_db_session_statement(t->session, statement));
    pg_drop(t);
}

/* After an error the server skips all messages up to the next Sync. */
static void pg_failed(talk_state *t) {
    while (t->pending_count > 0 && !pg_is_next(t, PENDING_SYNC)) {
        pg_drop(t);
    }
}

static sql_statement pg_read(const talk_state *t, const char *text, size_t len) {
    const sql_rules rules = samovar_talk_rules(t);
    return samovar_sql_read(text, len, &rules);
}

static void pg_query(talk_state *t, const char *text, size_t len) {
    const sql_statement statement = pg_read(t, text, strnlen(text, len));
    t->questions++;
    samovar_talk_note(t, statement.effects);
    if (statement.deallocates) {
        pg_expect(t, PENDING_DEALLOCATE, statement.deallocates);
    }
    pg_expect(t, PENDING_SYNC, 0);
}

static void pg_parse(talk_state *t, const char *name, size_t len) {
    const size_t name_len = strnlen(name, len);
    if (name_len == len) {
        t->lost = true;
        return;
    }
    const char *text = name + name_len + 1;
    const sql_statement statement = pg_read(t, text, strnlen(text, len - name_len - 1));
    samovar_talk_note(t, statement.effects);
    t->changed |= statement.deallocates != 0;
    pg_expect(t, PENDING_PARSE, name_len > 0 ? samovar_hash(name, name_len) : 0);
}

/* Bind: portal, statement. A statement of a request was read when it was prepared. */
static void pg_bind(talk_state *t, const char *portal, size_t len) {
    const size_t portal_len = strnlen(portal, len);
    const char *name = portal + portal_len + 1;
    const size_t room = len > portal_len ? len - portal_len - 1 : 0, name_len = strnlen(name, room);
    if (name_len == room) {
        t->lost = true;
    } else if (name_len > 0) {
        const db_statement *statement =
            t->session ? samovar_db_session_statement(t->session, samovar_hash(name, name_len))
                       : NULL;
        t->changed |= !t->session || !t->session->knows_statements;
        samovar_talk_note(t, statement ? statement->effects : 0);
    }
}

static void pg_close(talk_state *t, const char *body, size_t len) {
    const size_t name_len = len > 1 ? strnlen(body + 1, len - 1) : 0;
    const bool is_statement = len > 0 && body[0] == 'S' && name_len > 0;
    pg_expect(t, PENDING_CLOSE, is_statement ? samovar_hash(body + 1, name_len) : 0);
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
    case 'B':
        pg_bind(t, body, len);
        return;
    case 'C':
        pg_close(t, body, len);
        return;
    case 'S':
        t->questions++;
        pg_expect(t, PENDING_SYNC, 0);
        return;
    case 'F': /* FunctionCall */
        t->questions++;
        t->changed = true;
        pg_expect(t, PENDING_SYNC, 0);
        return;
    case 'c': /* COPY */
    case 'd':
    case 'f':
        t->changed = true;
        return;
    case 'D':
    case 'E':
    case 'H':
        return;
    default:
        t->lost = true;
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
            r->left = samovar_big_endian(r->bytes + 1);
            if (r->left < 4) {
                t->lost = true;
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
    case '1':
        pg_done(t, PENDING_PARSE);
        return;
    case '3':
        pg_done(t, PENDING_CLOSE);
        return;
    case 'C': /* CommandComplete */
        if (pg_is_next(t, PENDING_DEALLOCATE)) {
            pg_done(t, PENDING_DEALLOCATE);
        }
        return;
    case 'E':
        pg_failed(t);
        return;
    case 'Z':
        pg_failed(t);
        pg_done(t, PENDING_SYNC);
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
                r->left = samovar_big_endian(r->bytes + 1) - 4;
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
