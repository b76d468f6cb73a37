/* The session that a database server keeps for a connection of the image: proof that a statement
 * does not change it, and its reset to the state of the image. */
#ifndef SAMOVAR_OUTSIDE_DB_SESSION_H
#define SAMOVAR_OUTSIDE_DB_SESSION_H

#include "outside/db_query.h"
#include "outside/sql.h"

enum {
    SESSION_STATEMENTS_MAX = 64,      /* prepared by the boot; with more the session is not reset */
    SESSION_ASK_SECONDS_MAX = 3,      /* the server ends a longer query; less than QUERY_WAIT_MS */
    SESSION_ASK_EVERY_MS = 60 * 1000, /* the schema may change */
    SESSION_ASK_SHARE = 1000          /* asking takes at most this part of the time */
};

/* A statement that the boot has prepared. */
typedef struct {
    uint64_t key;        /* PostgreSQL: hash of its name (hash.h); MySQL: its number */
    unsigned effects;    /* SQL_… of its text */
    uint64_t types;      /* MySQL: hash of the parameters' types that the boot has sent; 0: none */
    uint16_t parameters; /* MySQL: their number */
} db_statement;

/* All of it is in shared memory: a rollback must not restore an older state. */
typedef struct {
    bool mysql, is_mariadb;
    bool is_known;          /* `unsafe` is complete, so statements can be proven */
    bool has_proven_writes; /* tables with triggers are among `unsafe` */
    bool has_hidden_state;  /* the boot has set state that no query shows */
    bool is_resettable;     /* `restore` is complete */
    bool is_checked;        /* a reset has led to the state of the image */
    bool knows_statements;  /* `statements` is complete */
    /* PostgreSQL: the boot has used a sequence. Its last value cannot be restored. */
    bool has_last_value;
    /* MySQL: results of the boot's last statement: its id, and whether it returned rows. */
    char clear_ids[64];
    bool returned_rows;
    int64_t ask_again_ms;
    uint64_t fingerprint; /* of the state of the image */
    unsafe_names unsafe;
    db_statement statements[SESSION_STATEMENTS_MAX];
    uint32_t statement_count;
    /* Messages that return the session to the state of the image. PostgreSQL: with
     * `restore_ends` responses ReadyForQuery. MySQL: texts of queries, each ends in NUL. */
    size_t restore_len;
    unsigned restore_ends;
    char restore[QUERY_BYTES_MAX];
} db_session;

/* Asks the server, in a worker that has just begun, before its part of the image is taken.
 * Returns NULL if there is no memory. */
db_session *samovar_db_session_begin(int fd, bool mysql);
/* The rules by which statements are read now. */
sql_rules samovar_db_session_rules(const db_session *s);
/* Returns NULL if the boot has not prepared it. */
const db_statement *samovar_db_session_statement(const db_session *s, uint64_t key);

/* Each is called while the connection is idle, and returns false if the worker must leave.
 *
 * refresh: asks the server again, if the last time is long ago. A changed schema ends the worker:
 * the statements of the boot were judged by the former one. */
bool samovar_db_session_refresh(db_session *s, int fd);
/* Replaces the last id that a request has left by that of the boot. PostgreSQL: discards the last
 * values of sequences, unless the boot has left one. */
bool samovar_db_session_clear_ids(const db_session *s, int fd);
/* Returns the session to the state of the image. */
bool samovar_db_session_reset(db_session *s, int fd);
/* MySQL: removes warnings and row counts that the statement before has left. */
bool samovar_db_session_clear_results(const db_session *s, int fd);
/* MySQL: replaces FOUND_ROWS(), and keeps warnings. */
bool samovar_db_session_clear_found(int fd);

/* db_session_pgsql.c, db_session_mysql.c. ask: fills `unsafe` and the fields about it. capture:
 * fills `statements`, `restore` and the fields about them, and returns the fingerprint of the
 * state. */
bool samovar_db_session_ask_pgsql(db_session *s, int fd);
bool samovar_db_session_ask_mysql(db_session *s, int fd);
bool samovar_db_session_capture_pgsql(db_session *s, int fd, uint64_t *fingerprint);
bool samovar_db_session_capture_mysql(db_session *s, int fd, uint64_t *fingerprint);
bool samovar_db_session_restore_mysql(const db_session *s, int fd);
/* Called before any other query. */
bool samovar_db_session_note_results(db_session *s, int fd);
/* read_boot: reads the statements that the boot has sent. */
void samovar_db_session_read_boot_pgsql(db_session *s, int fd);
void samovar_db_session_read_boot_mysql(db_session *s, int fd);

/* MySQL: types of the parameters in a COM_STMT_EXECUTE without its command byte: hash of them, 0 if
 * it sends none. */
uint64_t samovar_db_session_types(const db_statement *statement, const char *text, size_t len);

/* Adds bytes to `restore`. Returns false if they do not fit. */
bool samovar_db_session_add(db_session *s, const void *bytes, size_t len);
void samovar_db_session_add_statement(db_session *s, db_statement statement);
/* Adds a value of a row to the hash of a state. */
uint64_t samovar_db_session_mix(uint64_t fingerprint, query_value value);

#endif
