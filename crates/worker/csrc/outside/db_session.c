/* Decides nothing about a request: connection_protocols.c and connections.c do. */
#define _GNU_SOURCE
#include "outside/db_session.h"
#include "boundary.h"
#include "outside/hash.h"
#include <string.h>
#include <sys/param.h>

sql_rules samovar_db_session_rules(const db_session *s) {
    return (sql_rules){.mysql = s->mysql, .unsafe = s->is_known ? &s->unsafe : NULL};
}

const db_statement *samovar_db_session_statement(const db_session *s, uint64_t key) {
    for (uint32_t i = 0; i < s->statement_count; i++) {
        if (s->statements[i].key == key) {
            return &s->statements[i];
        }
    }
    return NULL;
}

bool samovar_db_session_add(db_session *s, const void *bytes, size_t len) {
    if (len > sizeof s->restore - s->restore_len) {
        s->is_resettable = false;
        return false;
    }
    memcpy(s->restore + s->restore_len, bytes, len);
    s->restore_len += len;
    return true;
}

void samovar_db_session_add_statement(db_session *s, db_statement statement) {
    if (s->statement_count == SESSION_STATEMENTS_MAX) {
        s->knows_statements = s->is_resettable = false;
        return;
    }
    s->statements[s->statement_count++] = statement;
}

uint64_t samovar_db_session_mix(uint64_t fingerprint, query_value value) {
    const uint64_t of_value = value.at ? samovar_hash(value.at, value.len) : 1;
    return samovar_hash_add(fingerprint, of_value) + value.len;
}

static bool ask(db_session *s, int fd) {
    const int64_t from = samovar_db_now_ms();
    memset(&s->unsafe, 0, sizeof s->unsafe);
    s->is_known =
        s->mysql ? samovar_db_session_ask_mysql(s, fd) : samovar_db_session_ask_pgsql(s, fd);
    s->is_known = s->is_known && !s->unsafe.is_full;
    const int64_t now = samovar_db_now_ms();
    s->ask_again_ms = now + MAX((now - from) * SESSION_ASK_SHARE, SESSION_ASK_EVERY_MS);
    return s->is_known;
}

static bool capture(db_session *s, int fd, uint64_t *fingerprint) {
    s->restore_len = s->restore_ends = 0;
    if (!s->mysql) {
        s->statement_count = 0;
    }
    return s->mysql ? samovar_db_session_capture_mysql(s, fd, fingerprint)
                    : samovar_db_session_capture_pgsql(s, fd, fingerprint);
}

db_session *samovar_db_session_begin(int fd, bool mysql) {
    db_session *s = samovar_db_query_begin() ? samovar_shared_memory(sizeof *s) : NULL;
    if (!s) {
        return NULL;
    }
    s->mysql = mysql;
    s->is_resettable = !mysql || samovar_db_session_note_results(s, fd);
    ask(s, fd);
    const bool is_captured = capture(s, fd, &s->fingerprint);
    if (mysql) {
        samovar_db_session_read_boot_mysql(s, fd);
    } else {
        samovar_db_session_read_boot_pgsql(s, fd);
    }
    /* MySQL numbers statements, so the driver would not find those that are prepared again. */
    s->is_resettable = s->is_resettable && is_captured && !s->has_hidden_state &&
                       !(mysql && (s->statement_count > 0 || !s->knows_statements));
    if (mysql) {
        samovar_db_session_clear_results(s, fd);
    }
    return s;
}

bool samovar_db_session_refresh(db_session *s, int fd) {
    if (samovar_db_now_ms() < s->ask_again_ms) {
        return true;
    }
    const uint64_t former = s->unsafe.digest;
    return ask(s, fd) && s->unsafe.digest == former;
}

bool samovar_db_session_clear_ids(const db_session *s, int fd) {
    return s->mysql
               ? samovar_db_query_mysql(fd, s->clear_ids, NULL, NULL)
               : !s->has_last_value && samovar_db_query_pgsql(fd, "DISCARD SEQUENCES", NULL, NULL);
}

/* Only a statement that uses a table removes warnings. */
bool samovar_db_session_clear_results(const db_session *s, int fd) {
    return samovar_db_query_mysql(fd,
                                  s->returned_rows ? "SELECT 1 FROM (SELECT 1) AS t"
                                                   : "DO (SELECT 1 FROM (SELECT 1) AS t)",
                                  NULL, NULL);
}

bool samovar_db_session_clear_found(int fd) {
    return samovar_db_query_mysql(fd, "SELECT 1", NULL, NULL);
}

/* The first reset is checked: the server must show the state that it showed for the image. */
static bool check(db_session *s, int fd) {
    uint64_t now = 0;
    if (s->is_checked) {
        return true;
    }
    s->is_checked = s->is_resettable && capture(s, fd, &now) && now == s->fingerprint;
    return s->is_checked;
}

bool samovar_db_session_reset(db_session *s, int fd) {
    if (!s->is_resettable) {
        return false;
    }
    const bool is_restored = s->mysql ? samovar_db_session_restore_mysql(s, fd)
                                      : samovar_db_query_pgsql_raw(fd, s->restore, s->restore_len,
                                                                   s->restore_ends, NULL, NULL);
    s->is_resettable = is_restored && check(s, fd);
    return s->is_resettable && (!s->mysql || samovar_db_session_clear_results(s, fd));
}
