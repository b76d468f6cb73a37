/* Statements of PDO. */
#include "insight/hooked.h"
#include <ext/pdo/php_pdo_driver.h>
#include <string.h>

static bool has_driver(const pdo_dbh_t *dbh, const char *name, size_t len) {
    return dbh->driver->driver_name_len == len && memcmp(dbh->driver->driver_name, name, len) == 0;
}

static sql_dialect dialect_of(const pdo_dbh_t *dbh) {
    if (!dbh || !dbh->driver) {
        return SQL_UNKNOWN;
    }
    return has_driver(dbh, ZEND_STRL("mysql"))    ? SQL_MYSQL
           : has_driver(dbh, ZEND_STRL("pgsql"))  ? SQL_PGSQL
           : has_driver(dbh, ZEND_STRL("sqlite")) ? SQL_SQLITE
                                                  : SQL_UNKNOWN;
}

static uint32_t describe_pdo(const hook *h, zend_execute_data *execute_data, bool *skips) {
    return samovar_text_of(samovar_argument(execute_data, 1), dialect_of(Z_PDO_DBH_P(ZEND_THIS)),
                           skips);
}

static uint32_t describe_pdo_statement(const hook *h, zend_execute_data *execute_data,
                                       bool *skips) {
    const pdo_stmt_t *statement = Z_PDO_STMT_P(ZEND_THIS);
    const zend_string *text = statement->query_string;
    if (!text || !statement->dbh) {
        *skips = true;
        return NO_TEXT;
    }
    return samovar_statements_sql(text, dialect_of(statement->dbh));
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

void samovar_hook_pdo(void) {
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
    samovar_hook_all("pdo", connection, COUNT(connection));
    samovar_hook_all("pdostatement", statement, COUNT(statement));
}
