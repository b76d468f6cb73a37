/* Statements of mysqli, pgsql and SQLite3. Where an object does not tell its text, the text is
 * remembered when the statement is prepared. */
#include "insight/hooked.h"
#include <string.h>

static uint64_t key_of_object(const zend_object *object) {
    return samovar_statements_hash(object->ce->name->val, 0, object->handle);
}

/* mysqli::prepare, mysqli_prepare, SQLite3::prepare: the result is the statement. */
static uint64_t finish_prepare(const hook *h, zend_execute_data *execute_data, zval *return_value,
                               statement_call *call) {
    bool skips = false;
    const uint32_t text = samovar_text_of(samovar_argument(execute_data, 1), h->dialect, &skips);
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
    const zend_object *object = samovar_subject(execute_data);
    const uint32_t text =
        samovar_text_of(samovar_argument(execute_data, number), h->dialect, &skips);
    if (object && !skips) {
        samovar_statements_remember(key_of_object(object), text);
    }
    return 0;
}

static uint32_t describe_prepared(const hook *h, zend_execute_data *execute_data, bool *skips) {
    const zend_object *object = samovar_subject(execute_data);
    *skips = !object;
    return object ? samovar_statements_remembered(key_of_object(object)) : NO_TEXT;
}

/* The first argument of functions of pgsql, the connection, is optional. */
static const zval *pgsql_argument(const hook *h, zend_execute_data *execute_data, uint32_t n) {
    return samovar_argument(execute_data, n - (ZEND_NUM_ARGS() < h->len));
}

static uint32_t describe_pgsql(const hook *h, zend_execute_data *execute_data, bool *skips) {
    return samovar_text_of(pgsql_argument(h, execute_data, 1), SQL_PGSQL, skips);
}

static uint64_t key_of_name(const zval *name) {
    return name && Z_TYPE_P(name) == IS_STRING
               ? samovar_statements_hash(Z_STRVAL_P(name), Z_STRLEN_P(name), UINT32_MAX)
               : 0;
}

static uint64_t finish_pgsql_prepare(const hook *h, zend_execute_data *execute_data,
                                     zval *return_value, statement_call *call) {
    bool skips = false;
    const uint32_t text = samovar_text_of(pgsql_argument(h, execute_data, 2), SQL_PGSQL, &skips);
    if (!skips) {
        samovar_statements_remember(key_of_name(pgsql_argument(h, execute_data, 1)), text);
    }
    return 0;
}

static uint32_t describe_pgsql_execute(const hook *h, zend_execute_data *execute_data,
                                       bool *skips) {
    return samovar_statements_remembered(key_of_name(pgsql_argument(h, execute_data, 1)));
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* Functions that count rows; NULL without their extension. None of them throws for a connection or
 * a statement that has just been used, nor for a result that is in memory. */
static zend_function *rows_of_link, *rows_of_statement, *rows_of_result, *rows_of_pgsql;

static uint64_t rows_by(zend_function *counter, zend_object *object) {
    zval value;
    if (!object) {
        return 0;
    }
    ZVAL_OBJ(&value, object);
    return samovar_count_by(counter, &value);
}

/* Rows of a query of mysqli: changed ones, or read ones if they are in memory. */
static uint64_t finish_query(const hook *h, zend_execute_data *execute_data, zval *return_value,
                             statement_call *call) {
    return Z_TYPE_P(return_value) == IS_FALSE
               ? 0
               : rows_by(rows_of_link, samovar_subject(execute_data));
}

/* mysqli::execute_query: a result is in memory. */
static uint64_t finish_execute_query(const hook *h, zend_execute_data *execute_data,
                                     zval *return_value, statement_call *call) {
    return Z_TYPE_P(return_value) == IS_OBJECT ? rows_by(rows_of_result, Z_OBJ_P(return_value))
                                               : finish_query(h, execute_data, return_value, call);
}

/* mysqli_stmt::execute: changed rows. store_result, get_result: read rows. The statement is asked:
 * a result of a cursor may throw. */
static uint64_t finish_statement(const hook *h, zend_execute_data *execute_data, zval *return_value,
                                 statement_call *call) {
    return Z_TYPE_P(return_value) == IS_FALSE
               ? 0
               : rows_by(rows_of_statement, samovar_subject(execute_data));
}

static uint64_t finish_pgsql(const hook *h, zend_execute_data *execute_data, zval *return_value,
                             statement_call *call) {
    return Z_TYPE_P(return_value) == IS_OBJECT ? rows_by(rows_of_pgsql, Z_OBJ_P(return_value)) : 0;
}

static zend_function *function_named(const char *name) {
    return samovar_find_function(CG(function_table), name);
}

/* ---- start --------------------------------------------------------------------------------- */

/* `new mysqli` without arguments does not connect. */
static uint32_t describe_construct(const hook *h, zend_execute_data *execute_data, bool *skips) {
    *skips = ZEND_NUM_ARGS() == 0;
    return *skips ? NO_TEXT : samovar_describe_fixed(h, execute_data, skips);
}

static void hook_mysqli(void) {
    rows_of_link = function_named("mysqli_affected_rows");
    rows_of_statement = function_named("mysqli_stmt_affected_rows");
    rows_of_result = function_named("mysqli_num_rows");
    const hook query = {
        .describe = samovar_describe_argument, .finish = finish_query, .dialect = SQL_MYSQL};
    hook execute_query = query;
    execute_query.finish = finish_execute_query;
    hook construct_link = {FIXED("(connect)")};
    construct_link.describe = describe_construct;
    const hook prepare = {
        .describe = samovar_describe_nothing, .finish = finish_prepare, .dialect = SQL_MYSQL};
    const hook prepare_self = {.describe = samovar_describe_nothing,
                               .finish = finish_prepare_self,
                               .dialect = SQL_MYSQL,
                               .len = 1};
    const hook construct = {.describe = samovar_describe_nothing,
                            .finish = finish_prepare_self,
                            .dialect = SQL_MYSQL,
                            .len = 2};
    const hook execute = {.describe = describe_prepared, .finish = finish_statement};
    const hook store = {
        .describe = describe_prepared, .finish = finish_statement, .continues = true};
    const hook_row connection[] = {
        {"mysqli_query", "query", query},
        {"mysqli_real_query", "real_query", query},
        {"mysqli_multi_query", "multi_query", query},
        {"mysqli_execute_query", "execute_query", execute_query},
        {"mysqli_prepare", "prepare", prepare},
        {"mysqli_begin_transaction", "begin_transaction", {FIXED("BEGIN")}},
        {"mysqli_commit", "commit", {FIXED("COMMIT")}},
        {"mysqli_rollback", "rollback", {FIXED("ROLLBACK")}},
        {"mysqli_real_connect", "real_connect", {FIXED("(connect)")}},
        {"mysqli_connect", "connect", {FIXED("(connect)")}},
        {NULL, "__construct", construct_link},
    };
    const hook_row statement[] = {
        {"mysqli_stmt_prepare", "prepare", prepare_self},
        {NULL, "__construct", construct},
        {"mysqli_stmt_execute", "execute", execute},
        {"mysqli_execute", NULL, execute},
        {"mysqli_stmt_store_result", "store_result", store},
        {"mysqli_stmt_get_result", "get_result", store},
    };
    samovar_hook_all("mysqli", connection, COUNT(connection));
    samovar_hook_all("mysqli_stmt", statement, COUNT(statement));
}

static void hook_pgsql(void) {
    rows_of_pgsql = function_named("pg_affected_rows");
    /* `len`: number of arguments with the connection. */
    const hook_row rows[] = {
        {"pg_query", NULL, {.describe = describe_pgsql, .finish = finish_pgsql, .len = 2}},
        {"pg_query_params", NULL, {.describe = describe_pgsql, .finish = finish_pgsql, .len = 3}},
        {"pg_prepare",
         NULL,
         {.describe = samovar_describe_nothing, .finish = finish_pgsql_prepare, .len = 3}},
        {"pg_execute",
         NULL,
         {.describe = describe_pgsql_execute, .finish = finish_pgsql, .len = 3}},
        {"pg_connect", NULL, {FIXED("(connect)")}},
        {"pg_pconnect", NULL, {FIXED("(connect)")}},
    };
    samovar_hook_all(NULL, rows, COUNT(rows));
}

static void hook_sqlite3(void) {
    const hook query = {.describe = samovar_describe_argument, .dialect = SQL_SQLITE};
    const hook_row connection[] = {
        {NULL, "query", query},
        {NULL, "exec", query},
        {NULL, "querysingle", query},
        {NULL,
         "prepare",
         {.describe = samovar_describe_nothing, .finish = finish_prepare, .dialect = SQL_SQLITE}},
    };
    const hook_row statement[] = {{NULL, "execute", {.describe = describe_prepared}}};
    samovar_hook_all("sqlite3", connection, COUNT(connection));
    samovar_hook_all("sqlite3stmt", statement, COUNT(statement));
}

void samovar_hook_databases(void) {
    hook_mysqli();
    hook_pgsql();
    hook_sqlite3();
}
