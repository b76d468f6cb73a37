/* The protocol on a kept connection to MySQL or MariaDB. */
#define _GNU_SOURCE
#include "outside/language.h"
#include "outside/hash.h"
#include "outside/wire_format.h"

static uint64_t id_hash(const uint8_t *id) {
    return samovar_hash(id, 4);
}

static unsigned note_statement(talk_state *t, const char *text, size_t len) {
    const sql_rules rules = samovar_talk_rules(t);
    const unsigned effects = samovar_sql_read(text, len, &rules).effects;
    samovar_talk_note(t, effects);
    return effects;
}

static talk_prepared *prepared_by_request(talk_state *t, uint32_t id) {
    uint32_t i = 0;
    while (i < t->prepared_count && t->prepared[i].id != id) {
        i++;
    }
    return i < t->prepared_count ? &t->prepared[i] : NULL;
}

static void note_prepared(talk_state *t, uint32_t id) {
    if (t->prepared_count == TALK_PREPARED_MAX) {
        t->changed = true; /* The effects of its execution are unknown. */
    } else {
        t->prepared[t->prepared_count++] = (talk_prepared){id, t->executed};
    }
}

/* Effects of an execution, which replaces results of the statement before. */
static unsigned effects_of_execution(talk_state *t, uint32_t id, const db_statement *statement) {
    const talk_prepared *own = prepared_by_request(t, id);
    return own ? own->effects : statement ? statement->effects : SQL_TABLES | SQL_SELECTS;
}

/* Parameters that were sent in advance stay until the statement is executed or reset. */
static void note_long_data(talk_state *t, uint32_t id, bool is_sent) {
    uint32_t i = 0;
    while (i < t->long_data_count && t->long_data[i] != id) {
        i++;
    }
    if (!is_sent && i < t->long_data_count) {
        t->long_data[i] = t->long_data[--t->long_data_count];
    } else if (is_sent && i == TALK_LONG_DATA_MAX) {
        t->changed = true;
    } else if (is_sent && i == t->long_data_count) {
        t->long_data[t->long_data_count++] = id;
    }
}

static void note_execution(talk_state *t, const char *text, size_t len) {
    if (len < 5 || text[4] != 0) { /* The flags may request a cursor on the server. */
        t->changed = true;
        return;
    }
    const uint32_t id = samovar_little_endian(text);
    const db_statement *statement =
        t->session ? samovar_db_session_statement(t->session, id) : NULL;
    note_long_data(t, id, false);
    if (statement) {
        samovar_talk_note(t, statement->effects);
        /* The driver does not send the types of the boot again, so a request must not change
         * them. */
        const uint64_t types = samovar_db_session_types(statement, text, len);
        t->changed |= statement->types != 0 && types != 0 && types != statement->types;
    }
    t->changed |= !t->session || !t->session->knows_statements;
    samovar_talk_note_execution(t, effects_of_execution(t, id, statement));
}

static void note_close(talk_state *t, const char *text) {
    const uint32_t id = samovar_little_endian(text);
    talk_prepared *own = prepared_by_request(t, id);
    if (own) {
        *own = t->prepared[--t->prepared_count];
    }
    note_long_data(t, id, false);
    t->statements ^= id_hash((const uint8_t *)text);
    t->changed |= t->session && samovar_db_session_statement(t->session, id) != NULL;
}

/* mysqlnd sends each packet with one call. */
static void mysql_sent(talk_state *t, const uint8_t *at, size_t len) {
    if (len < MYSQL_HEADER + 1 || at[3] != 0 || samovar_mysql_length(at) + MYSQL_HEADER != len) {
        t->lost = true;
        return;
    }
    const char *text = (const char *)at + MYSQL_HEADER + 1;
    const size_t text_len = len - MYSQL_HEADER - 1;
    const uint8_t command = at[MYSQL_HEADER];
    const bool names_statement = command >= COM_STMT_SEND_LONG_DATA && command <= COM_STMT_RESET;
    t->prepares = t->awaits_result = false;
    if (names_statement && text_len < 4) {
        t->lost = true;
        return;
    }
    switch (command) {
    case COM_QUERY:
        samovar_talk_note_execution(t, note_statement(t, text, text_len));
        return;
    case COM_STMT_PREPARE:
        t->executed = note_statement(t, text, text_len);
        t->prepares = true;
        return;
    case COM_STMT_CLOSE:
        note_close(t, text);
        return;
    case COM_STMT_EXECUTE:
        note_execution(t, text, text_len);
        return;
    case COM_STMT_SEND_LONG_DATA:
        note_long_data(t, samovar_little_endian(text), true);
        return;
    case COM_STMT_RESET:
        note_long_data(t, samovar_little_endian(text), false);
        return;
    case COM_PING:
        return;
    default:
        t->changed = true;
    }
}

/* The response to COM_STMT_PREPARE begins with the statement's number. */
static void mysql_received(talk_state *t, const uint8_t *at, size_t len) {
    if (t->awaits_result && len > MYSQL_HEADER) {
        const bool is_error = at[MYSQL_HEADER] == MYSQL_ERROR;
        t->awaits_result = false;
        t->has_own_messages |= is_error; /* Its message replaces the former ones. */
        t->has_selected |= !is_error && (t->executed & SQL_SELECTS) != 0;
    }
    if (!t->prepares) {
        return;
    }
    t->prepares = false;
    if (len < MYSQL_HEADER + 5) {
        t->lost = true;
    } else if (at[MYSQL_HEADER] == 0) {
        t->statements ^= id_hash(at + MYSQL_HEADER + 1);
        note_prepared(t, samovar_little_endian((const char *)at + MYSQL_HEADER + 1));
    }
}

const talk_reading samovar_reads_mysql = {mysql_sent, mysql_received};
