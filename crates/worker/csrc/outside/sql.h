/* Detects statements that leave a database's session unchanged. */
#ifndef SAMOVAR_OUTSIDE_SQL_H
#define SAMOVAR_OUTSIDE_SQL_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true if the statement changes no state that the server keeps for the session. */
bool samovar_sql_is_plain(const char *text, size_t len, bool mysql);

#endif
