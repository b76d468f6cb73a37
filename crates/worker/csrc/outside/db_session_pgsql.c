/* Facts from a PostgreSQL server: names whose use may change a session, and the state of the
 * session of a connection.
 *
 * Only the server knows its functions, their effects, and the functions that a view, a trigger or
 * a default calls. Names are enough: a name that is unsafe in one schema is unsafe in all. */
#define _GNU_SOURCE
#include "outside/db_session.h"
#include "outside/boot_traffic.h"
#include "outside/hash.h"
#include "outside/wire_format.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Oids below 16384 (FirstNormalObjectId) belong to PostgreSQL itself.
 *
 * unsafe: functions that may change the session. Safe are: PostgreSQL's own and those in C of an
 * extension, if they are declared immutable or stable; and PostgreSQL's own volatile functions
 * of a list. Functions that run a text as a query (…_to_xml…) are unsafe.
 * bodies, called: expressions of the schema, and the functions that they call (nodes in
 * pg_node_tree name them by oid). fills: the expression is a column's default.
 * relations, reached: relations whose use calls an unsafe function or that are temporary or
 * foreign; and the relations whose use leads there: views, parents of partitions, targets of
 * foreign keys.
 * types: types whose casts, checks or defaults call one, and so the tables with such columns.
 * numbers: functions that change the last value of a sequence. The text of a statement shows them,
 * and shows that it may use a default (INSERT, DEFAULT). It does not show them in a view, a rule, a
 * policy, or a foreign key that sets a default.
 * unproven: an implicit cast, an index or a type that calls an unsafe function has no name in the
 * statement, and neither has the operator of IN, BETWEEN or LIKE. */
static const char facts[] =
    "WITH RECURSIVE unsafe AS ("
    "SELECT p.oid, p.proname FROM pg_catalog.pg_proc p WHERE NOT ("
    "p.provolatile <> 'v' AND p.proname NOT LIKE '%to\\_xml%' AND (p.oid < 16384 OR p.prolang = "
    "(SELECT oid FROM pg_catalog.pg_language WHERE lanname = 'c') AND EXISTS (SELECT FROM "
    "pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND "
    "d.objid = p.oid AND d.deptype = 'e'))) AND NOT (p.oid < 16384 AND (p.proname LIKE "
    "'RI\\_FKey%' OR p.proname IN ('random', 'clock_timestamp', 'timeofday', 'gen_random_uuid', "
    "'pg_sleep', 'pg_sleep_for', 'pg_sleep_until', 'pg_advisory_xact_lock', "
    "'pg_advisory_xact_lock_shared', 'pg_try_advisory_xact_lock', "
    "'pg_try_advisory_xact_lock_shared', 'suppress_redundant_updates_trigger', "
    "'tsvector_update_trigger', 'tsvector_update_trigger_column', 'pg_relation_size', "
    "'pg_table_size', 'pg_total_relation_size', 'pg_indexes_size', 'pg_database_size', "
    "'pg_notify', 'system', 'bernoulli', 'current_query', 'unique_key_recheck', 'txid_status', "
    "'pg_lock_status', 'pg_blocking_pids') OR pg_catalog.pg_my_temp_schema() = 0 AND p.proname "
    "IN ('nextval', 'setval', 'currval', 'lastval')))"
    "), bodies AS ("
    "SELECT ev_class AS rel, false AS fills, concat(ev_action::text, ev_qual::text) AS body "
    "FROM pg_catalog.pg_rewrite WHERE ev_class >= 16384 OR ev_type <> '1' "
    "UNION ALL SELECT adrelid, true, adbin::text FROM pg_catalog.pg_attrdef "
    "UNION ALL SELECT conrelid, false, conbin::text FROM pg_catalog.pg_constraint "
    "WHERE conbin IS NOT NULL "
    "UNION ALL SELECT polrelid, false, concat(polqual::text, polwithcheck::text) "
    "FROM pg_catalog.pg_policy "
    "UNION ALL SELECT indrelid, false, concat(indexprs::text, indpred::text) FROM "
    "pg_catalog.pg_index "
    "WHERE indexprs IS NOT NULL OR indpred IS NOT NULL"
    "), called AS ("
    "SELECT DISTINCT rel, fills, m[1]::oid AS fn FROM bodies, pg_catalog.regexp_matches(body, "
    "':(?:funcid|opfuncid|aggfnoid|winfnoid) (\\d+)', 'g') m"
    "), edges AS ("
    "SELECT d.refobjid AS used, r.ev_class AS rel FROM pg_catalog.pg_depend d "
    "JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid "
    "WHERE d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass "
    "AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass "
    "UNION ALL SELECT inhrelid, inhparent FROM pg_catalog.pg_inherits "
    "UNION ALL SELECT conrelid, confrelid FROM pg_catalog.pg_constraint WHERE contype = 'f'"
    "), types AS ("
    "SELECT casttarget AS oid FROM pg_catalog.pg_cast WHERE castfunc IN (SELECT oid FROM unsafe) "
    "UNION SELECT contypid FROM pg_catalog.pg_constraint, pg_catalog.regexp_matches(conbin::text, "
    "':(?:funcid|opfuncid) (\\d+)', 'g') m WHERE contypid <> 0 "
    "AND m[1]::oid IN (SELECT oid FROM unsafe) "
    "UNION SELECT t.oid FROM pg_catalog.pg_type t, pg_catalog.regexp_matches("
    "typdefaultbin::text, ':(?:funcid|opfuncid) (\\d+)', 'g') m "
    "WHERE typdefaultbin IS NOT NULL AND m[1]::oid IN (SELECT oid FROM unsafe)"
    "), numbers AS ("
    "SELECT oid FROM pg_catalog.pg_proc WHERE oid < 16384 AND proname IN ('nextval', 'setval')"
    "), relations AS ("
    "SELECT oid AS rel FROM pg_catalog.pg_class WHERE relkind = 'f' OR relpersistence = 't' "
    "AND relnamespace = pg_catalog.pg_my_temp_schema() "
    "UNION SELECT rel FROM called WHERE fn IN (SELECT oid FROM unsafe) "
    "OR NOT fills AND fn IN (SELECT oid FROM numbers) "
    "UNION SELECT confrelid FROM pg_catalog.pg_constraint WHERE contype = 'f' "
    "AND 'd' IN (confdeltype, confupdtype) "
    "UNION SELECT tgrelid FROM pg_catalog.pg_trigger WHERE NOT tgisinternal "
    "AND tgfoid IN (SELECT oid FROM unsafe) "
    "UNION SELECT attrelid FROM pg_catalog.pg_attribute WHERE atttypid IN (SELECT oid FROM types)"
    "), reached AS ("
    "SELECT rel FROM relations UNION SELECT e.rel FROM edges e JOIN reached r ON r.rel = e.used"
    ") "
    "SELECT proname FROM unsafe "
    "UNION SELECT typname FROM pg_catalog.pg_type WHERE oid IN (SELECT oid FROM types) "
    "UNION SELECT relname FROM reached JOIN pg_catalog.pg_class c ON c.oid = rel "
    "UNION SELECT oprname FROM pg_catalog.pg_operator WHERE oprcode IN (SELECT oid FROM unsafe) "
    "UNION SELECT NULL WHERE EXISTS (SELECT FROM pg_catalog.pg_operator "
    "WHERE oprcode IN (SELECT oid FROM unsafe) AND oprname IN ('=', '<>', '<', '<=', '>', '>=', "
    "'~~', '~~*', '!~~', '!~~*', '~', '!~')) "
    "OR EXISTS (SELECT FROM pg_catalog.pg_cast WHERE castfunc IN (SELECT oid FROM unsafe) "
    "AND castcontext = 'i') "
    "OR EXISTS (SELECT FROM pg_catalog.pg_amproc WHERE amproc IN (SELECT oid FROM unsafe)) "
    "OR EXISTS (SELECT FROM pg_catalog.pg_type WHERE typinput IN (SELECT oid FROM unsafe) "
    "OR typoutput IN (SELECT oid FROM unsafe))";

/* A NULL says that statements cannot be proven by the names in them. */
static bool add_name(void *data, const query_value *values, unsigned count) {
    db_session *s = data;
    if (count != 1 || !values[0].at) {
        return false;
    }
    samovar_names_add(&s->unsafe, values[0].at, values[0].len);
    return true;
}

/* The server ends the query in time. Without that, the connection would have to be closed. */
bool samovar_db_session_ask_pgsql(db_session *s, int fd) {
    char limit[64];
    snprintf(limit, sizeof limit, "SET LOCAL statement_timeout = '%ds'", SESSION_ASK_SECONDS_MAX);
    s->has_proven_writes = true;
    const bool is_good = samovar_db_query_pgsql(fd, "BEGIN READ ONLY", NULL, NULL) &&
                         samovar_db_query_pgsql(fd, limit, NULL, NULL) &&
                         samovar_db_query_pgsql(fd, facts, add_name, s);
    return samovar_db_query_pgsql(fd, "ROLLBACK", NULL, NULL) && is_good;
}

/* ---- the state of the image ---------------------------------------------------------------- */

/* Rows: kind, name, text, types. held: state that cannot be restored. */
static const char state[] =
    "SELECT 'setting', name::text, setting, NULL FROM pg_catalog.pg_settings "
    "WHERE source = 'session' "
    "UNION ALL SELECT CASE WHEN from_sql THEN 'sql' ELSE 'message' END, name, statement, "
    "array_to_string(parameter_types::pg_catalog.oid[], ',') "
    "FROM pg_catalog.pg_prepared_statements "
    "UNION ALL SELECT 'held', NULL, NULL, NULL WHERE pg_catalog.pg_my_temp_schema() <> 0 "
    "OR EXISTS (SELECT FROM pg_catalog.pg_cursors) "
    "OR EXISTS (SELECT FROM pg_catalog.pg_listening_channels()) "
    "OR EXISTS (SELECT FROM pg_catalog.pg_locks WHERE locktype = 'advisory' "
    "AND pid = pg_catalog.pg_backend_pid()) "
    "OR session_user <> current_user "
    "ORDER BY 1, 2";

enum { SETTINGS_BYTES_MAX = 16 << 10, TYPES_MAX = 256 };

typedef struct {
    db_session *session;
    uint64_t fingerprint;
    char settings[SETTINGS_BYTES_MAX]; /* SELECT set_config(…), … */
    size_t settings_len;
    char *prepares; /* messages */
    size_t prepares_len;
    bool has_messages;
} capture;

static bool add_text(capture *c, const char *text, size_t len) {
    if (len >= sizeof c->settings - c->settings_len) {
        c->session->is_resettable = false;
        return false;
    }
    memcpy(c->settings + c->settings_len, text, len);
    c->settings_len += len;
    return true;
}

static void add_quoted(capture *c, query_value value) {
    add_text(c, "'", 1);
    for (size_t i = 0; i < value.len; i++) {
        if (value.at[i] == '\\' || value.at[i] == 0) {
            c->session->is_resettable = false;
        }
        add_text(c, value.at[i] == '\'' ? "''" : value.at + i, value.at[i] == '\'' ? 2 : 1);
    }
    add_text(c, "'", 1);
}

static void add_setting(capture *c, query_value name, query_value value) {
    static const char start[] = "SELECT ", next[] = ", ", call[] = "pg_catalog.set_config(";
    add_text(c, c->settings_len ? next : start, strlen(c->settings_len ? next : start));
    add_text(c, call, sizeof call - 1);
    add_quoted(c, name);
    add_text(c, ", ", 2);
    add_quoted(c, value);
    add_text(c, ", false)", 8);
}

static void add_prepare(capture *c, const void *bytes, size_t len) {
    if (len > QUERY_BYTES_MAX - c->prepares_len) {
        c->session->is_resettable = false;
        return;
    }
    memcpy(c->prepares + c->prepares_len, bytes, len);
    c->prepares_len += len;
}

static void big_endian(char *to, size_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++) {
        to[i] = (char)(value >> (8 * (bytes - 1 - i)));
    }
}

static void add_header(capture *c, char kind, size_t body) {
    char header[5] = {kind};
    big_endian(header + 1, body + 4, 4);
    add_prepare(c, header, sizeof header);
}

/* Parse: name, text, number of types (2), types (4 each). */
static void add_parse(capture *c, query_value name, query_value text, query_value types) {
    char oids[4 * TYPES_MAX], count_bytes[2];
    size_t count = 0;
    const char *at = types.at, *const end = types.at + types.len;
    while (at && at < end && count < TYPES_MAX) {
        big_endian(oids + 4 * count++, strtoul(at, NULL, 10), 4);
        const char *comma = memchr(at, ',', (size_t)(end - at));
        at = comma ? comma + 1 : end;
    }
    if (at != end) {
        c->session->is_resettable = false;
    }
    add_header(c, 'P', name.len + 1 + text.len + 1 + sizeof count_bytes + 4 * count);
    add_prepare(c, name.at, name.len);
    add_prepare(c, "", 1);
    add_prepare(c, text.at, text.len);
    add_prepare(c, "", 1);
    big_endian(count_bytes, count, sizeof count_bytes);
    add_prepare(c, count_bytes, sizeof count_bytes);
    add_prepare(c, oids, 4 * count);
    c->has_messages = true;
}

/* The text of PREPARE is the whole statement: the part after AS is executed. */
static unsigned effects_of(const db_session *s, query_value text, bool from_sql) {
    const sql_rules rules = samovar_db_session_rules(s);
    if (from_sql) {
        const char *as = memmem(text.at, text.len, " AS ", 4);
        as = as ? as : memmem(text.at, text.len, " as ", 4);
        if (!as) {
            return SQL_CHANGES;
        }
        text.len -= (size_t)(as + 4 - text.at);
        text.at = as + 4;
    }
    return samovar_sql_read(text.at, text.len, &rules).effects;
}

static bool add_state(void *data, const query_value *values, unsigned count) {
    capture *c = data;
    db_session *s = c->session;
    if (count != 4 || !values[0].at) {
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        c->fingerprint = samovar_db_session_mix(c->fingerprint, values[i]);
    }
    if (values[0].len == 4) { /* held */
        s->is_resettable = false;
        return true;
    }
    if (!values[1].at || !values[2].at) {
        return false;
    }
    if (memcmp(values[0].at, "setting", values[0].len) == 0) {
        add_setting(c, values[1], values[2]);
        return true;
    }
    const bool from_sql = values[0].len == 3;
    samovar_db_session_add_statement(
        s, (db_statement){.key = samovar_hash(values[1].at, values[1].len),
                          .effects = effects_of(s, values[2], from_sql)});
    if (from_sql) {
        add_header(c, 'Q', values[2].len + 1);
        add_prepare(c, values[2].at, values[2].len);
        add_prepare(c, "", 1);
        s->restore_ends++;
    } else {
        add_parse(c, values[1], values[2], values[3]);
    }
    return true;
}

static void add_query(db_session *s, const char *sql) {
    char header[5] = {'Q'};
    big_endian(header + 1, strlen(sql) + 1 + 4, 4);
    samovar_db_session_add(s, header, sizeof header);
    samovar_db_session_add(s, sql, strlen(sql) + 1);
    s->restore_ends++;
}

/* Effects of a message of the boot. A prepared statement counts when it is bound. */
static unsigned effects_of_message(const db_session *s, char kind, const char *body, size_t len) {
    const sql_rules rules = samovar_db_session_rules(s);
    const size_t first = strnlen(body, len);
    const char *second = body + first + 1;
    const size_t left = len > first ? len - first - 1 : 0;
    switch (kind) {
    case 'Q':
        return samovar_sql_read(body, first, &rules).effects;
    case 'P': /* name, text */
        return first == 0 ? samovar_sql_read(second, strnlen(second, left), &rules).effects : 0;
    case 'B': { /* portal, name */
        const size_t name_len = strnlen(second, left);
        const db_statement *statement =
            samovar_db_session_statement(s, samovar_hash(second, name_len));
        return name_len == 0 ? 0 : statement ? statement->effects : SQL_HIDES;
    }
    case 'F': /* FunctionCall, COPY */
    case 'd':
        return SQL_HIDES;
    default:
        return 0;
    }
}

/* Reads the boot's own statements: one that is neither plain nor shown by `state` may have left
 * hidden state, e.g. a setting of an extension (`app.user`). A startup message has no kind: its
 * length comes first. */
static unsigned effects_of_boot(const db_session *s, const boot_traffic *boot) {
    unsigned effects = boot && boot->is_complete ? 0 : SQL_HIDES;
    size_t at = 0;
    while (boot && at < boot->len) {
        const uint8_t *message = (const uint8_t *)boot->sent + at;
        const size_t kind_len = message[0] != 0, left = boot->len - at - kind_len;
        const uint8_t *size = message + kind_len;
        const size_t len = left < 4 ? 0 : samovar_big_endian(size);
        if (len < 4 || len > left) {
            return effects | SQL_HIDES;
        }
        const char kind = kind_len ? (char)message[0] : 0;
        effects |= effects_of_message(s, kind, (const char *)size + 4, len - 4);
        at += kind_len + len;
    }
    return effects;
}

void samovar_db_session_read_boot_pgsql(db_session *s, int fd) {
    const unsigned effects = effects_of_boot(s, samovar_boot_traffic_of(fd));
    s->has_hidden_state = (effects & SQL_HIDES) != 0;
    /* The server logs an error if there is no last value, so it is asked only if there may be. */
    s->has_last_value = (effects & (SQL_INSERTS | SQL_HIDES)) != 0 &&
                        samovar_db_query_pgsql(fd, "SELECT pg_catalog.lastval()", NULL, NULL);
}

bool samovar_db_session_capture_pgsql(db_session *s, int fd, uint64_t *fingerprint) {
    static const char sync[] = {'S', 0, 0, 0, 4};
    capture *c = calloc(1, sizeof *c);
    char *prepares = malloc(QUERY_BYTES_MAX);
    bool is_good = c && prepares;
    if (is_good) {
        c->session = s;
        c->prepares = prepares;
        is_good = samovar_db_query_pgsql(fd, state, add_state, c);
        *fingerprint = c->fingerprint;
        add_text(c, "", 1);
        add_query(s, "DISCARD ALL");
        if (c->settings[0]) {
            add_query(s, c->settings);
        }
        samovar_db_session_add(s, c->prepares, c->prepares_len);
        if (c->has_messages) {
            samovar_db_session_add(s, sync, sizeof sync);
            s->restore_ends++;
        }
    }
    free(prepares);
    free(c);
    s->knows_statements = is_good && s->statement_count < SESSION_STATEMENTS_MAX;
    return is_good;
}
