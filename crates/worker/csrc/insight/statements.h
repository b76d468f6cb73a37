/* Statements of a request: SQL, HTTP requests and commands of Redis, without their literals, with
 * counts, times and positions.
 *
 * A text is normalised once per worker and then known by a hash. The texts survive requests and
 * rollbacks, because they are in shared memory of the worker's own, like the accounting. */
#ifndef SAMOVAR_INSIGHT_STATEMENTS_H
#define SAMOVAR_INSIGHT_STATEMENTS_H

#include "insight/names.h"
#include <php.h>
#include <stddef.h>

enum {
    STATEMENTS_MAX = 128,        /* of one request; all others share one record */
    STATEMENT_PLACES = 3,        /* of one statement */
    STATEMENT_BYTES = 1000,      /* of a text, as in crates/log/src/sql.rs */
    KNOWN_TEXTS = 512,           /* normalised */
    KNOWN_SOURCES = 1024,        /* texts of the application; a power of two */
    TEXT_SLOTS = 1024,           /* of the hash table of texts; a power of two */
    PREPARED_MAX = 512,          /* statements whose objects do not tell their text */
    KNOWN_FILES = 64,            /* a power of two */
    OPEN_MAX = 16,               /* executions at the same time that are known as unfinished */
    KNOWN_TEXT_BYTES = 192 << 10 /* of all normalised texts */
};
enum { NO_TEXT = KNOWN_TEXTS };

/* Values of `StatementKind` in crates/insight/src/report.rs. */
typedef enum { STATEMENT_SQL = 0, STATEMENT_HTTP = 1, STATEMENT_REDIS = 2 } statement_kind;

/* Values of `Dialect` in crates/log/src/sql.rs. */
typedef enum { SQL_UNKNOWN = 0, SQL_MYSQL = 1, SQL_PGSQL = 2, SQL_SQLITE = 3 } sql_dialect;

/* Position of the application's code that has made the call. */
typedef struct {
    const zend_string *file; /* compared only */
    uint32_t line;
    uint32_t calls;
    short_name name; /* of the file; a long path is cut at its start */
} statement_place;

/* Sum of all executions of one statement in a request. */
typedef struct {
    uint32_t text;
    uint32_t calls;
    uint64_t ns;
    uint64_t rows; /* read or changed, as far as the extension knows */
    uint32_t place_count;
    statement_kind kind;
    statement_place places[STATEMENT_PLACES];
} statement_record;

typedef struct {
    uint64_t hash;
    uint32_t at;
    uint16_t len;
    uint16_t record; /* in the request `request` */
    uint32_t request;
} known_text;

typedef struct {
    uint64_t hash;
    uint32_t text;
} known_source;

/* Text of a prepared statement, by its object or name. */
typedef struct {
    uint64_t key;
    uint32_t epoch, text;
} prepared_text;

/* A file of code, and whether it is of a library. Known for one request. */
typedef struct {
    const zend_string *file;
    uint32_t request;
    bool is_library;
} known_file;

/* A statement that is being executed. */
typedef struct {
    uint32_t request;
    uint32_t record;
    uint32_t place;
    uint32_t open;  /* index in the list of open ones; OPEN_MAX: it has no room */
    bool continues; /* it was counted before */
    uint64_t from_ns;
} statement_call;

typedef struct {
    uint64_t seed;    /* of hashes */
    uint32_t request; /* number of the current one */
    uint32_t epoch;   /* how often the texts were forgotten */
    uint32_t text_count, text_bytes;
    uint32_t record_count;
    bool has_others;               /* the record of all others is used */
    uint32_t open_used;            /* entries of `open` that may be set */
    statement_call open[OPEN_MAX]; /* from_ns is 0: none */
    known_file files[KNOWN_FILES];
    known_source sources[KNOWN_SOURCES];
    uint16_t slots[TEXT_SLOTS]; /* index of a text + 1; 0: none */
    known_text texts[KNOWN_TEXTS];
    prepared_text prepared[PREPARED_MAX];
    char bytes[KNOWN_TEXT_BYTES];
    statement_record records[STATEMENTS_MAX + 1]; /* the last one is of all others */
} statements_state;

/* NULL if this process is not a worker, or no longer one. */
extern statements_state *samovar_statements;

void samovar_statements_install(void);
void samovar_statements_open(void);

/* Returns a hash of a text: of a source, or of a name. */
uint64_t samovar_statements_hash(const char *text, size_t len, uint64_t more);
/* Returns the index of the normal form of a statement; NO_TEXT if there is no room for it. */
uint32_t samovar_statements_sql(const zend_string *text, sql_dialect dialect);
/* The same for a HTTP request. `method` may be NULL: unknown. */
uint32_t samovar_statements_http(const char *method, const char *url, size_t len);
/* The same for a text without literals. */
uint32_t samovar_statements_plain(statement_kind kind, const char *text, size_t len);

/* Remembers the text of a prepared statement. */
void samovar_statements_remember(uint64_t key, uint32_t text);
uint32_t samovar_statements_remembered(uint64_t key);

/* Begins an execution at the current position of PHP's code. `continues`: an execution that was
 * counted before, so the position does not matter. */
void samovar_statement_begin(statement_call *call, statement_kind kind, uint32_t text,
                             bool continues);
/* Gives a running execution another text. `at`: where it began; NULL: at the current position. */
void samovar_statement_rename(statement_call *call, statement_kind kind, uint32_t text,
                              const statement_place *at);
/* Returns the current position. Its file is NULL if no PHP code runs. */
statement_place samovar_statement_here(void);
/* Ends it. Does nothing if the request has ended meanwhile. `calls` is 0 if this continues an
 * execution that was counted before. */
void samovar_statement_end(const statement_call *call, uint32_t calls, uint64_t rows);
/* The same for an execution that has taken `ns`, and that ended before now. */
void samovar_statement_end_after(const statement_call *call, uint64_t ns);

/* Ends the executions that a fatal error has left. */
void samovar_statements_close(void);

/* Returns the text of a record, and its length. */
const char *samovar_statement_text_of(const statement_record *record, size_t *len);

/* Defined in Rust (src/statement_text.rs). Each returns the length of the normal form in `to`. */
size_t samovar_normal_sql(const uint8_t *text, size_t len, uint32_t dialect, uint8_t *to,
                          size_t room);
size_t samovar_normal_http(const uint8_t *method, size_t method_len, const uint8_t *url, size_t len,
                           uint8_t *to, size_t room);

#endif
