/* Effects of an SQL statement on the session of its connection. */
#ifndef SAMOVAR_OUTSIDE_SQL_H
#define SAMOVAR_OUTSIDE_SQL_H

#include "outside/unsafe_names.h"

enum {
    SQL_CHANGES = 1,  /* may change the session, or is not understood */
    SQL_INSERTS = 2,  /* may set the last inserted id, or the last value of a sequence */
    SQL_OBSERVES = 4, /* MySQL: reads warnings or errors of earlier statements */
    SQL_WRITES = 8,   /* changes rows: triggers may run */
    SQL_HIDES = 16,   /* may leave state that no query of the session shows, e.g. SET @x */
    SQL_COUNTS = 32,  /* MySQL: reads ROW_COUNT() of the statement before it */
    SQL_TABLES = 64,  /* MySQL: uses a table, and so replaces warnings and errors */
    SQL_FINDS = 128,  /* MySQL: reads FOUND_ROWS() */
    SQL_SELECTS = 256 /* MySQL: replaces FOUND_ROWS(), if it succeeds */
};

typedef struct {
    bool mysql;
    /* Names whose use may change the session. NULL: not known. */
    const unsafe_names *unsafe;
} sql_rules;

typedef struct {
    unsigned effects; /* SQL_… */
    /* PostgreSQL's DEALLOCATE: hash (hash.h) of the statement's name; else 0. */
    uint64_t deallocates;
} sql_statement;

sql_statement samovar_sql_read(const char *text, size_t len, const sql_rules *rules);

/* Returns true if a native function of MySQL or MariaDB depends on its arguments, the tables, the
 * clock or settings only, and changes nothing. `name` is in lower case. Also true for keywords
 * that may precede a parenthesis. */
bool samovar_mysql_function_is_pure(const char *name);

#endif
