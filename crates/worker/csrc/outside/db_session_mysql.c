/* Facts from a MySQL or MariaDB server: names whose use may change a session, and the state of the
 * session of a connection.
 *
 * It shows triggers and views, but neither user variables nor temporary tables. So the boot's own
 * statements are read, too: a boot that leaves such state has a session that is not reset, and
 * each statement that writes counts as a change. */
#define _GNU_SOURCE
#include "outside/db_session.h"
#include "outside/boot_traffic.h"
#include "outside/hash.h"
#include "outside/wire_format.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    VIEWS_PASSES_MAX = 8 /* views of views */
};

/* ---- the schema ---------------------------------------------------------------------------- */

static bool is_allowed(void *data, const query_value *values, unsigned count) {
    (void)values, (void)count;
    *(bool *)data = true;
    return true;
}

static bool add_table(void *data, const query_value *values, unsigned count) {
    db_session *s = data;
    if (count != 1 || !values[0].at) {
        return false;
    }
    samovar_names_add(&s->unsafe, values[0].at, values[0].len);
    return true;
}

static bool add_view(void *data, const query_value *values, unsigned count) {
    db_session *s = data;
    const sql_rules rules = {.mysql = true, .unsafe = &s->unsafe};
    if (count != 2 || !values[0].at) {
        return false;
    }
    /* Without the privilege to see it, the definition is empty. */
    const bool is_plain =
        values[1].len > 0 && samovar_sql_read(values[1].at, values[1].len, &rules).effects == 0;
    if (!is_plain) {
        samovar_names_add(&s->unsafe, values[0].at, values[0].len);
    }
    return true;
}

static bool add_mode(void *data, const query_value *values, unsigned count) {
    bool *is_usual = data;
    *is_usual = count == 1 && values[0].at &&
                !memmem(values[0].at, values[0].len, "ANSI_QUOTES", 11) &&
                !memmem(values[0].at, values[0].len, "NO_BACKSLASH_ESCAPES", 20);
    return true;
}

/* Queries the schema with a limit of time that the server keeps: MariaDB's, or that of MySQL. */
static bool ask_schema(db_session *s, int fd, const char *query, query_row *row) {
    char text[1024];
    snprintf(text, sizeof text, "SET STATEMENT max_statement_time = %d FOR SELECT %s",
             SESSION_ASK_SECONDS_MAX, query);
    if (samovar_db_query_mysql(fd, text, row, s)) {
        return true;
    }
    snprintf(text, sizeof text, "SELECT /*+ MAX_EXECUTION_TIME(%d) */ %s",
             SESSION_ASK_SECONDS_MAX * 1000, query);
    return !s->is_mariadb && samovar_db_query_mysql(fd, text, row, s);
}

static bool ask_views(db_session *s, int fd) {
    for (unsigned pass = 0; pass < VIEWS_PASSES_MAX; pass++) {
        const uint32_t before = s->unsafe.count;
        if (!ask_schema(s, fd,
                        "TABLE_NAME, LEFT(VIEW_DEFINITION, 15000) FROM information_schema.VIEWS "
                        "WHERE TABLE_SCHEMA NOT IN ('sys', 'mysql', 'information_schema', "
                        "'performance_schema')",
                        add_view)) {
            return false;
        }
        if (s->unsafe.count == before) {
            return true;
        }
    }
    return false;
}

static bool add_version(void *data, const query_value *values, unsigned count) {
    *(bool *)data = count == 1 && values[0].at && memmem(values[0].at, values[0].len, "MariaDB", 7);
    return true;
}

static bool sees_triggers(int fd) {
    bool sees = false;
    return samovar_db_query_mysql(
               fd,
               "SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'TRIGGER' "
               "UNION ALL SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES "
               "WHERE PRIVILEGE_TYPE = 'TRIGGER' AND DATABASE() LIKE TABLE_SCHEMA "
               /* The server was started with --skip-grant-tables. */
               "UNION ALL SELECT 1 FROM DUAL WHERE CURRENT_USER() IN "
               "('@', 'skip-grants user@skip-grants host')",
               is_allowed, &sees) &&
           sees;
}

bool samovar_db_session_ask_mysql(db_session *s, int fd) {
    bool is_usual = false;
    if (!samovar_db_query_mysql(fd, "SELECT @@SESSION.sql_mode", add_mode, &is_usual) ||
        !is_usual || !samovar_db_query_mysql(fd, "SELECT VERSION()", add_version, &s->is_mariadb) ||
        !ask_schema(s, fd,
                    "DISTINCT EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS "
                    "WHERE TRIGGER_SCHEMA <> 'sys'",
                    add_table)) {
        return false;
    }
    /* MariaDB: a column's expression may set a variable, or use a sequence, whose last value the
     * session keeps. */
    if (s->is_mariadb &&
        !ask_schema(s, fd,
                    "DISTINCT TABLE_NAME FROM information_schema.COLUMNS "
                    "WHERE COLUMN_DEFAULT LIKE '%nextval%' OR COLUMN_DEFAULT LIKE '%:=%' "
                    "OR GENERATION_EXPRESSION LIKE '%:=%'",
                    add_table)) {
        return false;
    }
    s->has_proven_writes = sees_triggers(fd) && !s->has_hidden_state;
    return ask_views(s, fd);
}

/* ROW_COUNT() is -1 after a statement that returned rows. */
static bool add_results(void *data, const query_value *values, unsigned count) {
    db_session *s = data;
    if (count != 2 || !values[0].at || !values[1].at || values[1].len > 20) {
        return false;
    }
    s->returned_rows = values[0].len > 0 && values[0].at[0] == '-';
    snprintf(s->clear_ids, sizeof s->clear_ids, "DO LAST_INSERT_ID(%.*s)", (int)values[1].len,
             values[1].at);
    return true;
}

bool samovar_db_session_note_results(db_session *s, int fd) {
    snprintf(s->clear_ids, sizeof s->clear_ids, "DO LAST_INSERT_ID(0)");
    return samovar_db_query_mysql(fd, "SELECT ROW_COUNT(), LAST_INSERT_ID()", add_results, s);
}

/* ---- the state of the image ---------------------------------------------------------------- */

static const char variables_mariadb[] =
    "SELECT VARIABLE_NAME, SESSION_VALUE FROM information_schema.SYSTEM_VARIABLES "
    "WHERE VARIABLE_SCOPE = 'SESSION' AND READ_ONLY = 'NO' AND SESSION_VALUE IS NOT NULL "
    "AND NOT (SESSION_VALUE <=> GLOBAL_VALUE) ORDER BY 1";
static const char variables_mysql[] =
    "SELECT s.VARIABLE_NAME, s.VARIABLE_VALUE FROM performance_schema.session_variables s "
    "JOIN performance_schema.global_variables g USING (VARIABLE_NAME) "
    "WHERE NOT (s.VARIABLE_VALUE <=> g.VARIABLE_VALUE) ORDER BY 1";

typedef struct {
    db_session *session;
    uint64_t fingerprint;
    bool is_first;
} capture;

static void add_text(db_session *s, const char *text) {
    samovar_db_session_add(s, text, strlen(text));
}

static bool is_number(query_value value) {
    for (size_t i = 0; i < value.len; i++) {
        if (!strchr("0123456789.-", value.at[i])) {
            return false;
        }
    }
    return value.len > 0;
}

static void add_value(db_session *s, query_value value) {
    if (is_number(value)) {
        samovar_db_session_add(s, value.at, value.len);
        return;
    }
    if (memchr(value.at, '\'', value.len) || memchr(value.at, '\\', value.len) ||
        memchr(value.at, 0, value.len)) {
        s->is_resettable = false;
    }
    add_text(s, "'");
    samovar_db_session_add(s, value.at, value.len);
    add_text(s, "'");
}

static bool add_variable(void *data, const query_value *values, unsigned count) {
    capture *c = data;
    if (count != 2 || !values[0].at || !values[1].at) {
        return false;
    }
    c->fingerprint = samovar_db_session_mix(c->fingerprint, values[0]);
    c->fingerprint = samovar_db_session_mix(c->fingerprint, values[1]);
    add_text(c->session, c->is_first ? "SET SESSION " : ", SESSION ");
    c->is_first = false;
    samovar_db_session_add(c->session, values[0].at, values[0].len);
    add_text(c->session, " = ");
    add_value(c->session, values[1]);
    return true;
}

static bool add_database(void *data, const query_value *values, unsigned count) {
    capture *c = data;
    db_session *s = c->session;
    if (count != 1) {
        return false;
    }
    c->fingerprint = samovar_db_session_mix(c->fingerprint, values[0]);
    if (!values[0].at || memchr(values[0].at, '`', values[0].len)) {
        s->is_resettable = false; /* No statement leaves a database. */
        return true;
    }
    add_text(s, "USE `");
    samovar_db_session_add(s, values[0].at, values[0].len);
    samovar_db_session_add(s, "`", 2);
    return true;
}

/* MariaDB: a name, NULL for none. MySQL: a list of quoted names, NONE for none. */
static bool add_role(void *data, const query_value *values, unsigned count) {
    capture *c = data;
    db_session *s = c->session;
    if (count != 1) {
        return false;
    }
    c->fingerprint = samovar_db_session_mix(c->fingerprint, values[0]);
    const bool is_none =
        !values[0].at || (values[0].len == 4 && memcmp(values[0].at, "NONE", 4) == 0);
    const bool is_quoted = !is_none && values[0].len > 0 && values[0].at[0] == '`';
    add_text(s, is_none ? "SET ROLE NONE" : is_quoted ? "SET ROLE " : "SET ROLE `");
    if (!is_none) {
        samovar_db_session_add(s, values[0].at, values[0].len);
        add_text(s, is_quoted ? "" : "`");
    }
    samovar_db_session_add(s, "", 1);
    return true;
}

bool samovar_db_session_capture_mysql(db_session *s, int fd, uint64_t *fingerprint) {
    capture c = {.session = s, .is_first = true};
    if (!samovar_db_query_mysql(fd, variables_mariadb, add_variable, &c)) {
        s->restore_len = 0;
        c = (capture){.session = s, .is_first = true};
        if (!samovar_db_query_mysql(fd, variables_mysql, add_variable, &c)) {
            return false;
        }
    }
    if (!c.is_first) {
        samovar_db_session_add(s, "", 1);
    }
    samovar_db_query_mysql(fd, "SELECT CURRENT_ROLE()", add_role, &c); /* Fails before MySQL 8. */
    const bool is_good = samovar_db_query_mysql(fd, "SELECT DATABASE()", add_database, &c);
    *fingerprint = c.fingerprint;
    return is_good;
}

bool samovar_db_session_restore_mysql(const db_session *s, int fd) {
    if (!samovar_db_query_mysql_raw(fd, COM_RESET_CONNECTION, "", 0, NULL, NULL)) {
        return false;
    }
    for (size_t at = 0; at < s->restore_len; at += strlen(s->restore + at) + 1) {
        if (!samovar_db_query_mysql(fd, s->restore + at, NULL, NULL)) {
            return false;
        }
    }
    return true;
}

/* ---- the statements of the boot ------------------------------------------------------------ */

/* COM_STMT_EXECUTE: number (4), flags (1), 1 (4), bits of NULL parameters, whether types follow
 * (1), types (2 each). The server keeps them for the next execution. */
uint64_t samovar_db_session_types(const db_statement *statement, const char *text, size_t len) {
    const size_t at = 9 + (statement->parameters + 7u) / 8, bytes = 2u * statement->parameters;
    if (bytes == 0 || (at < len && text[at] == 0)) {
        return 0;
    }
    return at + bytes < len ? samovar_hash(text + at + 1, bytes) : 1;
}

static db_statement *find_statement(db_session *s, uint64_t key) {
    return (db_statement *)samovar_db_session_statement(s, key);
}

static void read_command(db_session *s, const boot_traffic *boot, uint32_t *prepared,
                         const uint8_t *command, size_t len) {
    const sql_rules rules = samovar_db_session_rules(s);
    const char *text = (const char *)command + 1;
    db_statement *statement = NULL;
    if (command[0] == COM_QUERY || command[0] == COM_STMT_PREPARE) {
        const unsigned effects = samovar_sql_read(text, len - 1, &rules).effects;
        if (command[0] == COM_QUERY) {
            s->has_hidden_state |= (effects & SQL_HIDES) != 0;
        } else if (*prepared < boot->prepared_count) {
            const uint32_t id = boot->prepared[*prepared].id;
            const uint16_t parameters = boot->prepared[(*prepared)++].parameters;
            if (id != 0) {
                samovar_db_session_add_statement(
                    s, (db_statement){.key = id, .effects = effects, .parameters = parameters});
            }
        } else {
            s->knows_statements = false;
        }
    } else if (command[0] == COM_STMT_EXECUTE && len >= 5) {
        statement = find_statement(s, samovar_little_endian(command + 1));
        if (statement) {
            const uint64_t types = samovar_db_session_types(statement, text, len - 1);
            statement->types = types ? types : statement->types;
            s->has_hidden_state |= (statement->effects & SQL_HIDES) != 0;
        }
    } else if (command[0] == COM_STMT_CLOSE && len >= 5) {
        statement = find_statement(s, samovar_little_endian(command + 1));
        if (statement) {
            *statement = s->statements[--s->statement_count];
        }
    }
}

/* Reads the bytes that the boot has sent: the packets of the login, whose numbers continue those of
 * the server, and then commands with the number 0. */
void samovar_db_session_read_boot_mysql(db_session *s, int fd) {
    const boot_traffic *boot = samovar_boot_traffic_of(fd);
    uint32_t prepared = 0;
    size_t at = 0;
    s->has_hidden_state = !boot || !boot->is_complete;
    s->knows_statements = !s->has_hidden_state;
    while (boot && boot->len - at > MYSQL_HEADER) {
        const uint8_t *packet = (const uint8_t *)boot->sent + at;
        const size_t len = samovar_mysql_length(packet);
        if (len > boot->len - at - MYSQL_HEADER) {
            s->has_hidden_state = true;
            s->knows_statements = false;
            return;
        }
        if (packet[3] == 0 && len > 0) {
            read_command(s, boot, &prepared, packet + MYSQL_HEADER, len);
        }
        at += MYSQL_HEADER + len;
    }
    s->has_proven_writes = s->has_proven_writes && !s->has_hidden_state;
}
