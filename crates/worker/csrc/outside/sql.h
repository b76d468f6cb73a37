/* Which statements change nothing of a database's session. */
#ifndef SAMOVAR_OUTSIDE_SQL_H
#define SAMOVAR_OUTSIDE_SQL_H

#include <stdbool.h>
#include <stddef.h>

/* The statement changes nothing that the server keeps for the session. */
bool samovar_sql_is_plain(const char *text, size_t len, bool mysql);

#endif
