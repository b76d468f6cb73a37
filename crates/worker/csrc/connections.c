/* Database connections that were opened above the checkpoint: the request's open transaction ends
 * with the request, as when php-fpm closes the connection. What else the server keeps for the
 * session (temporary tables, variables, locks by name) is not seen from here. */
#include "samovar.h"
#include <dlfcn.h>
#include <ext/mysqlnd/mysqlnd.h>
#include <ext/mysqlnd/mysqlnd_reverse_api.h>
#include <ext/mysqlnd/mysqlnd_structs.h>
#include <ext/pdo/php_pdo_driver.h>

enum { CONNECTIONS_MAX = 64 }; /* As many as an image may keep (KEPT_MAX). */

static pdo_dbh_t *pdo[CONNECTIONS_MAX];
static MYSQLND *mysql[CONNECTIONS_MAX];
static uint32_t pdo_count, mysql_count;

static const zend_class_entry *class_named(const char *name) {
    return zend_hash_str_find_ptr(CG(class_table), name, strlen(name));
}

/* ext/mysqlnd/mysqlnd_reverse_api.c: each extension that is built on mysqlnd tells how to get from
 * its objects to the connection. Extensions are loaded with their symbols global. */
typedef MYSQLND *mysqlnd_of(zval *object);

static mysqlnd_of *find_conversion(const char *extension) {
    HashTable *(*list)(void) = dlsym(RTLD_DEFAULT, "mysqlnd_reverse_api_get_api_list");
    MYSQLND_REVERSE_API *api =
        list ? zend_hash_str_find_ptr(list(), extension, strlen(extension)) : NULL;
    return api ? api->conversion_cb : NULL;
}

void samovar_connections_remember(void) {
    const zend_class_entry *pdo_class = class_named("pdo"), *mysqli_class = class_named("mysqli");
    mysqlnd_of *const mysqlnd_of_mysqli = find_conversion("mysqli");
    pdo_count = mysql_count = 0;
    for (uint32_t i = 1; i < EG(objects_store).top; i++) {
        zend_object *object = EG(objects_store).object_buckets[i];
        if (!IS_OBJ_VALID(object)) {
            continue;
        }
        if (pdo_class && instanceof_function(object->ce, pdo_class) &&
            pdo_count < CONNECTIONS_MAX) {
            pdo[pdo_count++] = php_pdo_dbh_fetch_inner(object);
        }
        if (mysqlnd_of_mysqli && mysqli_class && instanceof_function(object->ce, mysqli_class) &&
            mysql_count < CONNECTIONS_MAX) {
            zval zv;
            ZVAL_OBJ(&zv, object);
            MYSQLND *connection = mysqlnd_of_mysqli(&zv);
            if (connection) {
                mysql[mysql_count++] = connection;
            }
        }
    }
}

/* As pdo_dbh.c, pdo_is_in_transaction(). */
static bool is_in_transaction(pdo_dbh_t *dbh) {
    return dbh->methods->in_transaction ? dbh->methods->in_transaction(dbh) : dbh->in_txn;
}

void samovar_connections_end_transactions(void) {
    for (uint32_t i = 0; i < pdo_count; i++) {
        pdo_dbh_t *dbh = pdo[i];
        if (dbh->driver_data && dbh->methods && dbh->methods->rollback && is_in_transaction(dbh)) {
            dbh->methods->rollback(dbh);
        }
    }
    for (uint32_t i = 0; i < mysql_count; i++) {
        MYSQLND_CONN_DATA *data = mysql[i]->data;
        if (data && data->upsert_status &&
            (data->upsert_status->server_status & SERVER_STATUS_IN_TRANS)) {
            data->m->tx_commit_or_rollback(data, false, 0, NULL);
        }
    }
}
