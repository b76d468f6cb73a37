/* Queries that Samovar itself sends on an idle connection of the image, without its driver. */
#ifndef SAMOVAR_OUTSIDE_DB_QUERY_H
#define SAMOVAR_OUTSIDE_DB_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    QUERY_BYTES_MAX = 64 << 10, /* of a query; of a row of a result */
    QUERY_COLUMNS_MAX = 8,
    QUERY_WAIT_MS = 5000 /* for a complete response */
};

/* A value of a row as text. `at` is NULL for SQL's NULL. Valid during the call. */
typedef struct {
    const char *at;
    size_t len;
} query_value;

/* Called for each row of a result. NULL: rows are ignored. Returns false to fail the query. */
typedef bool query_row(void *data, const query_value *values, unsigned count);

/* Monotonic clock. */
int64_t samovar_db_now_ms(void);

/* Allocates the buffer, before the worker's part of the image is taken. Returns false if there
 * is no memory. */
bool samovar_db_query_begin(void);

/* Each of these sends a request and waits for the whole response. Returns false if the server
 * reports an error, takes too long, or sends something unexpected.
 *
 * PostgreSQL: messages of the protocol, which end in `ends` responses ReadyForQuery. */
bool samovar_db_query_pgsql_raw(int fd, const void *messages, size_t len, unsigned ends,
                                query_row *row, void *data);
bool samovar_db_query_pgsql(int fd, const char *sql, query_row *row, void *data);
/* MySQL: a command and its text. */
bool samovar_db_query_mysql_raw(int fd, uint8_t command, const void *text, size_t len,
                                query_row *row, void *data);
bool samovar_db_query_mysql(int fd, const char *sql, query_row *row, void *data);

#endif
