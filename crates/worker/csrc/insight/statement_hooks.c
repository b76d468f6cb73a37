/* Functions of extensions that execute statements: PDO, mysqli, pgsql, SQLite3, curl, streams,
 * Redis.
 *
 * The handler of each is replaced in the template. The original one is kept in the function's
 * reserved field, which PHP copies into functions of derived classes and into closures. A call
 * outside of a request with a reader costs two loads and the indirect call. No function here
 * changes arguments or results, catches an exception, or holds a resource while the original
 * function runs: that may end with a longjmp(). */
#include "insight/statement_hooks.h"
#include "insight/request_accounting.h"
#include "insight/statements.h"
#include <ext/pdo/php_pdo_driver.h>
#include <ext/standard/file.h>
#include <zend_extensions.h>
#include <string.h>

enum { HOOKS_MAX = 640 };

typedef struct hook hook;

/* Describes the call before the original function runs. Returns the text; NO_TEXT: none has room.
 * `skips` is set if the call executes nothing. */
typedef uint32_t describe(const hook *h, zend_execute_data *execute_data, bool *skips);
/* Looks at the result. Returns the number of rows. */
typedef uint64_t finish(const hook *h, zend_execute_data *execute_data, zval *return_value,
                        statement_call *call);

struct hook {
    zif_handler original;
    describe *describe;
    finish *finish; /* may be NULL */
    const char *text;
    uint8_t len;
    uint8_t kind, dialect;
    uint8_t continues; /* the execution was counted before */
};

static int reserved = -1; /* index of our field in zend_internal_function.reserved */
static hook hooks[HOOKS_MAX];
static uint32_t hook_count;

/* ---- arguments ----------------------------------------------------------------------------- */

/* Returns an argument, counted from 1 after the object, which is the first argument of a function.
 * NULL: it was not passed. */
static zval *argument(zend_execute_data *execute_data, uint32_t n) {
    n += Z_TYPE(EX(This)) != IS_OBJECT;
    if (n > ZEND_NUM_ARGS()) {
        return NULL;
    }
    zval *value = ZEND_CALL_ARG(execute_data, n);
    ZVAL_DEREF(value);
    return value;
}

static zend_object *subject(zend_execute_data *execute_data) {
    if (Z_TYPE(EX(This)) == IS_OBJECT) {
        return Z_OBJ(EX(This));
    }
    const zval *first = argument(execute_data, 0);
    return first && Z_TYPE_P(first) == IS_OBJECT ? Z_OBJ_P(first) : NULL;
}

static uint32_t of_string(const zval *text, sql_dialect dialect, bool *skips) {
    if (!text || Z_TYPE_P(text) != IS_STRING) {
        *skips = true;
        return NO_TEXT;
    }
    return samovar_statements_sql(Z_STRVAL_P(text), Z_STRLEN_P(text), dialect);
}

static uint32_t describe_fixed(const hook *h, zend_execute_data *execute_data, bool *skips) {
    return samovar_statements_plain(h->kind, h->text, h->len);
}

static uint32_t describe_argument(const hook *h, zend_execute_data *execute_data, bool *skips) {
    return of_string(argument(execute_data, 1), h->dialect, skips);
}

/* ---- PDO ----------------------------------------------------------------------------------- */

static sql_dialect dialect_of(const pdo_dbh_t *dbh) {
    const char *name = dbh && dbh->driver ? dbh->driver->driver_name : "";
    switch (name[0]) {
    case 'm':
        return strcmp(name, "mysql") == 0 ? SQL_MYSQL : SQL_UNKNOWN;
    case 'p':
        return strcmp(name, "pgsql") == 0 ? SQL_PGSQL : SQL_UNKNOWN;
    case 's':
        return strcmp(name, "sqlite") == 0 ? SQL_SQLITE : SQL_UNKNOWN;
    default:
        return SQL_UNKNOWN;
    }
}

static uint32_t describe_pdo(const hook *h, zend_execute_data *execute_data, bool *skips) {
    return of_string(argument(execute_data, 1), dialect_of(Z_PDO_DBH_P(ZEND_THIS)), skips);
}

static uint32_t describe_pdo_statement(const hook *h, zend_execute_data *execute_data,
                                       bool *skips) {
    const pdo_stmt_t *statement = Z_PDO_STMT_P(ZEND_THIS);
    const zend_string *text = statement->query_string;
    if (!text || !statement->dbh) {
        *skips = true;
        return NO_TEXT;
    }
    return samovar_statements_sql(ZSTR_VAL(text), ZSTR_LEN(text), dialect_of(statement->dbh));
}

/* SQLite does not know how many rows follow. */
static uint64_t rows_of(const pdo_stmt_t *statement) {
    const bool counts = statement->column_count == 0 || dialect_of(statement->dbh) != SQL_SQLITE;
    return counts && statement->row_count > 0 ? (uint64_t)statement->row_count : 0;
}

static uint64_t finish_pdo_statement(const hook *h, zend_execute_data *execute_data,
                                     zval *return_value, statement_call *call) {
    return Z_TYPE_P(return_value) == IS_TRUE ? rows_of(Z_PDO_STMT_P(ZEND_THIS)) : 0;
}

static uint64_t finish_pdo_query(const hook *h, zend_execute_data *execute_data, zval *return_value,
                                 statement_call *call) {
    return Z_TYPE_P(return_value) == IS_OBJECT ? rows_of(Z_PDO_STMT_P(return_value)) : 0;
}

static uint64_t finish_changed(const hook *h, zend_execute_data *execute_data, zval *return_value,
                               statement_call *call) {
    return Z_TYPE_P(return_value) == IS_LONG && Z_LVAL_P(return_value) > 0
               ? (uint64_t)Z_LVAL_P(return_value)
               : 0;
}

/* SQLite executes while rows are fetched. Other drivers have the rows in memory. */
static uint32_t describe_fetch(const hook *h, zend_execute_data *execute_data, bool *skips) {
    *skips = dialect_of(Z_PDO_STMT_P(ZEND_THIS)->dbh) != SQL_SQLITE;
    return *skips ? NO_TEXT : describe_pdo_statement(h, execute_data, skips);
}

static uint64_t finish_fetch(const hook *h, zend_execute_data *execute_data, zval *return_value,
                             statement_call *call) {
    const bool is_new = rows_of(Z_PDO_STMT_P(ZEND_THIS)) == 0;
    return is_new && Z_TYPE_P(return_value) == IS_ARRAY ? zend_array_count(Z_ARRVAL_P(return_value))
                                                        : 0;
}

/* ---- statements prepared with mysqli, pgsql, SQLite3 ---------------------------------------- */

static uint64_t key_of_object(const zend_object *object) {
    return samovar_statements_hash(object->ce->name->val, 0, object->handle);
}

/* mysqli::prepare, mysqli_prepare, SQLite3::prepare: the result is the statement. */
static uint64_t finish_prepare(const hook *h, zend_execute_data *execute_data, zval *return_value,
                               statement_call *call) {
    bool skips = false;
    const uint32_t text = of_string(argument(execute_data, 1), h->dialect, &skips);
    if (Z_TYPE_P(return_value) == IS_OBJECT && !skips) {
        samovar_statements_remember(key_of_object(Z_OBJ_P(return_value)), text);
    }
    return 0;
}

/* mysqli_stmt::prepare, mysqli_stmt_prepare, mysqli_stmt::__construct */
static uint64_t finish_prepare_self(const hook *h, zend_execute_data *execute_data,
                                    zval *return_value, statement_call *call) {
    bool skips = false;
    const uint32_t number = h->len; /* of the argument with the text */
    const zend_object *object = subject(execute_data);
    const uint32_t text = of_string(argument(execute_data, number), h->dialect, &skips);
    if (object && !skips) {
        samovar_statements_remember(key_of_object(object), text);
    }
    return 0;
}

static uint32_t describe_prepared(const hook *h, zend_execute_data *execute_data, bool *skips) {
    const zend_object *object = subject(execute_data);
    *skips = !object;
    return object ? samovar_statements_remembered(key_of_object(object)) : NO_TEXT;
}

/* The first argument of functions of pgsql, the connection, is optional. */
static const zval *pgsql_argument(const hook *h, zend_execute_data *execute_data, uint32_t n) {
    return argument(execute_data, n - (ZEND_NUM_ARGS() < h->len));
}

static uint32_t describe_pgsql(const hook *h, zend_execute_data *execute_data, bool *skips) {
    return of_string(pgsql_argument(h, execute_data, 1), SQL_PGSQL, skips);
}

static uint64_t key_of_name(const zval *name) {
    return name && Z_TYPE_P(name) == IS_STRING
               ? samovar_statements_hash(Z_STRVAL_P(name), Z_STRLEN_P(name), UINT32_MAX)
               : 0;
}

static uint64_t finish_pgsql_prepare(const hook *h, zend_execute_data *execute_data,
                                     zval *return_value, statement_call *call) {
    bool skips = false;
    const uint32_t text = of_string(pgsql_argument(h, execute_data, 2), SQL_PGSQL, &skips);
    if (!skips) {
        samovar_statements_remember(key_of_name(pgsql_argument(h, execute_data, 1)), text);
    }
    return 0;
}

static uint32_t describe_pgsql_execute(const hook *h, zend_execute_data *execute_data,
                                       bool *skips) {
    return samovar_statements_remembered(key_of_name(pgsql_argument(h, execute_data, 1)));
}

/* Preparing executes nothing. */
static uint32_t describe_nothing(const hook *h, zend_execute_data *execute_data, bool *skips) {
    *skips = true;
    return NO_TEXT;
}

/* ---- HTTP ---------------------------------------------------------------------------------- */

static zend_function *curl_getinfo;
static zend_long effective_url, effective_method;

static void curl_info(zval *handle, zend_long which, zval *value) {
    zval arguments[2];
    ZVAL_COPY_VALUE(&arguments[0], handle);
    ZVAL_LONG(&arguments[1], which);
    zend_call_known_function(curl_getinfo, NULL, NULL, value, 2, arguments, NULL);
}

static uint32_t describe_curl(zend_execute_data *execute_data, bool has_method) {
    zval *handle = argument(execute_data, 0);
    zval url, method;
    ZVAL_UNDEF(&method);
    curl_info(handle, effective_url, &url);
    if (has_method && effective_method) {
        curl_info(handle, effective_method, &method);
    }
    const char *name = Z_TYPE(method) == IS_STRING ? Z_STRVAL(method) : NULL;
    const uint32_t text = Z_TYPE(url) == IS_STRING
                              ? samovar_statements_http(name, Z_STRVAL(url), Z_STRLEN(url))
                              : NO_TEXT;
    zval_ptr_dtor(&url);
    zval_ptr_dtor(&method);
    return text;
}

/* The method is known when the request was made. */
static uint32_t describe_curl_before(const hook *h, zend_execute_data *execute_data, bool *skips) {
    const zval *handle = argument(execute_data, 0);
    *skips = !handle || Z_TYPE_P(handle) != IS_OBJECT || !curl_getinfo ||
             Z_OBJCE_P(handle)->type != ZEND_INTERNAL_CLASS ||
             !zend_string_equals_literal(Z_OBJCE_P(handle)->name, "CurlHandle");
    return *skips ? NO_TEXT : samovar_statements_plain(STATEMENT_HTTP, "HTTP", 4);
}

static uint64_t finish_curl(const hook *h, zend_execute_data *execute_data, zval *return_value,
                            statement_call *call) {
    if (!EG(exception)) {
        samovar_statement_rename(call, STATEMENT_HTTP, describe_curl(execute_data, true));
    }
    return 0;
}

static bool is_http(const zval *url) {
    return url && Z_TYPE_P(url) == IS_STRING && Z_STRLEN_P(url) > sizeof "http://" &&
           (strncasecmp(Z_STRVAL_P(url), "http://", 7) == 0 ||
            strncasecmp(Z_STRVAL_P(url), "https://", 8) == 0);
}

/* file_get_contents, fopen: `len` is the number of the argument with the context. */
static uint32_t describe_stream(const hook *h, zend_execute_data *execute_data, bool *skips) {
    const zval *url = argument(execute_data, 0);
    *skips = !is_http(url);
    if (*skips) {
        return NO_TEXT;
    }
    const char *name = "GET";
    zval *context = argument(execute_data, h->len - 1u);
    if (context && Z_TYPE_P(context) == IS_RESOURCE &&
        Z_RES_P(context)->type == php_le_stream_context()) {
        const zval *method = php_stream_context_get_option(Z_RES_P(context)->ptr, "http", "method");
        name = method && Z_TYPE_P(method) == IS_STRING ? Z_STRVAL_P(method) : name;
    }
    return samovar_statements_http(name, Z_STRVAL_P(url), Z_STRLEN_P(url));
}

/* ---- the hook ------------------------------------------------------------------------------ */

static ZEND_NAMED_FUNCTION(look_at_call) {
    const hook *h = EX(func)->internal_function.reserved[reserved];
    statement_call call;
    bool skips = !samovar_request_accounting_now() || !samovar_statements;
    const bool is_reported = !skips;
    if (is_reported) {
        const uint32_t text = h->describe(h, execute_data, &skips);
        if (!skips) {
            samovar_statement_begin(&call, h->kind, text, h->continues);
        }
    }
    h->original(INTERNAL_FUNCTION_PARAM_PASSTHRU);
    if (is_reported && samovar_statements && (!skips || h->describe == describe_nothing)) {
        const uint64_t rows =
            h->finish && !EG(exception) ? h->finish(h, execute_data, return_value, &call) : 0;
        if (!skips) {
            samovar_statement_end(&call, !h->continues, rows);
        }
    }
}

/* ---- start --------------------------------------------------------------------------------- */

static const hook *copy_of(const hook *like, zif_handler original) {
    if (hook_count == HOOKS_MAX) {
        return NULL;
    }
    hook *h = &hooks[hook_count++];
    *h = *like;
    h->original = original;
    return h;
}

static void hook_function(zend_function *f, const hook *like) {
    if (!f || f->type != ZEND_INTERNAL_FUNCTION || f->internal_function.handler == look_at_call) {
        return;
    }
    const hook *h = copy_of(like, f->internal_function.handler);
    if (h) {
        f->internal_function.reserved[reserved] = (void *)h;
        f->internal_function.handler = look_at_call;
    }
}

static zend_function *find_function(const HashTable *table, const char *name) {
    return zend_hash_str_find_ptr(table, name, strlen(name));
}

/* Classes of extensions have copies of the functions that they inherit. */
static void hook_method(const zend_class_entry *class, const char *name, const hook *like) {
    zend_class_entry *each;
    ZEND_HASH_FOREACH_PTR(CG(class_table), each) {
        if (each->type == ZEND_INTERNAL_CLASS && instanceof_function(each, class)) {
            hook_function(find_function(&each->function_table, name), like);
        }
    }
    ZEND_HASH_FOREACH_END();
}

/* A row of a table of hooks: either name may be NULL. */
typedef struct {
    const char *function, *method;
    hook like;
} hook_row;

static void hook_all(const char *class_name, const hook_row *rows, size_t count) {
    const zend_class_entry *class =
        class_name ? zend_hash_str_find_ptr(CG(class_table), class_name, strlen(class_name)) : NULL;
    for (const hook_row *row = rows; row < rows + count; row++) {
        if (row->function) {
            hook_function(find_function(CG(function_table), row->function), &row->like);
        }
        if (class && row->method) {
            hook_method(class, row->method, &row->like);
        }
    }
}

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])
#define FIXED(words) .describe = describe_fixed, .text = words, .len = sizeof words - 1

static void hook_pdo(void) {
    static const hook_row connection[] = {
        {NULL, "query", {.describe = describe_pdo, .finish = finish_pdo_query}},
        {NULL, "exec", {.describe = describe_pdo, .finish = finish_changed}},
        {NULL, "begintransaction", {FIXED("BEGIN")}},
        {NULL, "commit", {FIXED("COMMIT")}},
        {NULL, "rollback", {FIXED("ROLLBACK")}},
        {NULL, "__construct", {FIXED("(connect)")}},
    };
    static const hook_row statement[] = {
        {NULL, "execute", {.describe = describe_pdo_statement, .finish = finish_pdo_statement}},
        {NULL, "fetchall", {.describe = describe_fetch, .finish = finish_fetch, .continues = true}},
    };
    hook_all("pdo", connection, COUNT(connection));
    hook_all("pdostatement", statement, COUNT(statement));
}

static void hook_mysqli(void) {
    const hook query = {.describe = describe_argument, .dialect = SQL_MYSQL};
    const hook prepare = {
        .describe = describe_nothing, .finish = finish_prepare, .dialect = SQL_MYSQL};
    const hook prepare_self = {.describe = describe_nothing,
                               .finish = finish_prepare_self,
                               .dialect = SQL_MYSQL,
                               .len = 1};
    const hook construct = {.describe = describe_nothing,
                            .finish = finish_prepare_self,
                            .dialect = SQL_MYSQL,
                            .len = 2};
    const hook execute = {.describe = describe_prepared};
    const hook_row connection[] = {
        {"mysqli_query", "query", query},
        {"mysqli_real_query", "real_query", query},
        {"mysqli_multi_query", "multi_query", query},
        {"mysqli_execute_query", "execute_query", query},
        {"mysqli_prepare", "prepare", prepare},
        {"mysqli_begin_transaction", "begin_transaction", {FIXED("BEGIN")}},
        {"mysqli_commit", "commit", {FIXED("COMMIT")}},
        {"mysqli_rollback", "rollback", {FIXED("ROLLBACK")}},
        {"mysqli_real_connect", "real_connect", {FIXED("(connect)")}},
        {"mysqli_connect", NULL, {FIXED("(connect)")}},
    };
    const hook_row statement[] = {
        {"mysqli_stmt_prepare", "prepare", prepare_self},
        {NULL, "__construct", construct},
        {"mysqli_stmt_execute", "execute", execute},
        {"mysqli_execute", NULL, execute},
    };
    hook_all("mysqli", connection, COUNT(connection));
    hook_all("mysqli_stmt", statement, COUNT(statement));
}

static void hook_pgsql(void) {
    /* `len`: number of arguments with the connection. */
    const hook_row rows[] = {
        {"pg_query", NULL, {.describe = describe_pgsql, .len = 2}},
        {"pg_query_params", NULL, {.describe = describe_pgsql, .len = 3}},
        {"pg_prepare",
         NULL,
         {.describe = describe_nothing, .finish = finish_pgsql_prepare, .len = 3}},
        {"pg_execute", NULL, {.describe = describe_pgsql_execute, .len = 3}},
        {"pg_connect", NULL, {FIXED("(connect)")}},
        {"pg_pconnect", NULL, {FIXED("(connect)")}},
    };
    hook_all(NULL, rows, COUNT(rows));
}

static void hook_sqlite3(void) {
    const hook query = {.describe = describe_argument, .dialect = SQL_SQLITE};
    const hook_row connection[] = {
        {NULL, "query", query},
        {NULL, "exec", query},
        {NULL, "querysingle", query},
        {NULL,
         "prepare",
         {.describe = describe_nothing, .finish = finish_prepare, .dialect = SQL_SQLITE}},
    };
    const hook_row statement[] = {{NULL, "execute", {.describe = describe_prepared}}};
    hook_all("sqlite3", connection, COUNT(connection));
    hook_all("sqlite3stmt", statement, COUNT(statement));
}

static zend_long constant(const char *name) {
    const zval *value = zend_get_constant_str(name, strlen(name));
    return value && Z_TYPE_P(value) == IS_LONG ? Z_LVAL_P(value) : 0;
}

static void hook_http(void) {
    curl_getinfo = find_function(CG(function_table), "curl_getinfo");
    effective_url = constant("CURLINFO_EFFECTIVE_URL");
    effective_method = constant("CURLINFO_EFFECTIVE_METHOD");
    const hook_row rows[] = {
        {"curl_exec",
         NULL,
         {.describe = describe_curl_before, .finish = finish_curl, .kind = STATEMENT_HTTP}},
        {"file_get_contents",
         NULL,
         {.describe = describe_stream, .kind = STATEMENT_HTTP, .len = 3}},
        {"fopen", NULL, {.describe = describe_stream, .kind = STATEMENT_HTTP, .len = 4}},
    };
    hook_all(NULL, rows, COUNT(rows));
}

/* Methods of Redis that send no command. */
static bool is_local(const char *name) {
    static const char *const names[] = {
        "gethost",
        "getport",
        "getdbnum",
        "gettimeout",
        "getreadtimeout",
        "getauth",
        "getmode",
        "getoption",
        "getpersistentid",
        "getlasterror",
        "setoption",
        "isconnected",
        "close",
        "clearlasterror",
        "pipeline",
        "multi",
        "gettransferredbytes",
        "cleartransferredbytes",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return name[0] == '_';
}

static void hook_redis(void) {
    enum { COMMANDS_BYTES = 8192 };
    static char commands[COMMANDS_BYTES];
    size_t used = 0;
    const zend_class_entry *redis = zend_hash_str_find_ptr(CG(class_table), "redis", 5);
    zend_string *name;
    if (!redis) {
        return;
    }
    ZEND_HASH_FOREACH_STR_KEY((HashTable *)&redis->function_table, name) {
        const size_t len = ZSTR_LEN(name);
        if (is_local(ZSTR_VAL(name)) || len > UINT8_MAX || used + len > sizeof commands) {
            continue;
        }
        const bool connects = strstr(ZSTR_VAL(name), "connect") || strstr(ZSTR_VAL(name), "open");
        for (size_t i = 0; i < len; i++) {
            commands[used + i] =
                (char)(ZSTR_VAL(name)[i] -
                       ('a' <= ZSTR_VAL(name)[i] && ZSTR_VAL(name)[i] <= 'z' ? 32 : 0));
        }
        const hook command = {.describe = describe_fixed,
                              .kind = STATEMENT_REDIS,
                              .text = connects ? "(connect)" : commands + used,
                              .len = (uint8_t)(connects ? strlen("(connect)") : len)};
        used += len;
        hook_method(redis, ZSTR_VAL(name), &command);
    }
    ZEND_HASH_FOREACH_END();
}

void samovar_statement_hooks_startup(void) {
    reserved = zend_get_resource_handle("samovar");
    if (reserved < 0) {
        return; /* Other extensions use all fields. */
    }
    hook_pdo();
    hook_mysqli();
    hook_pgsql();
    hook_sqlite3();
    hook_http();
    hook_redis();
}
