/* Database connections that were opened above the checkpoint. The request's open transaction
 * ends with the request, as when php-fpm closes the connection. Then the driver is queried
 * whether the connection is idle, and connection_protocols.c whether the server's session is as
 * it was. If not, the worker leaves. */
#include "outside/connections.h"
#include "leave.h"
#include "memory/persistent.h"
#include "outside/boot_traffic.h"
#include "outside/connection_protocols.h"
#include <php.h>
#include <dlfcn.h>
#include <ext/mysqlnd/mysqlnd.h>
#include <ext/mysqlnd/mysqlnd_reverse_api.h>
#include <ext/mysqlnd/mysqlnd_structs.h>
#include <ext/pdo/php_pdo_driver.h>

enum { CONNECTIONS_MAX = 64 }; /* as many as an image may keep (KEPT_MAX) */

/* libpq-fe.h: PGTransactionStatusType. */
enum { PQTRANS_IDLE = 0, PQTRANS_INTRANS = 2, PQTRANS_INERROR = 3 };

typedef struct pg_conn pg_conn;
static struct {
    int (*status)(const pg_conn *);
    int (*socket)(const pg_conn *);
    const char *(*parameter)(const pg_conn *, const char *name);
    void *(*exec)(pg_conn *, const char *);
    void (*clear)(void *);
} pq;

/* Connections whose protocol connection_protocols.c can follow, by their descriptor. */
static struct {
    int fd;
    talk_language language;
    const void *driver; /* MYSQLND, pg_conn; Redis has no state beyond its traffic */
} known[CONNECTIONS_MAX];
static uint32_t known_count;
static const char *mode = "";

static pg_conn *pgsql[CONNECTIONS_MAX];
static uint32_t pgsql_count;
static pdo_dbh_t *pdo[CONNECTIONS_MAX];
static MYSQLND *mysql[CONNECTIONS_MAX];
static uint32_t pdo_count, mysql_count;

static const zend_class_entry *class_named(const char *name) {
    return zend_hash_str_find_ptr(CG(class_table), name, strlen(name));
}

/* ext/mysqlnd/mysqlnd_reverse_api.c: each extension that is built on mysqlnd provides a function
 * from its objects to the connection. Extensions are loaded with global symbols. */
typedef MYSQLND *mysqlnd_of(zval *object);

static mysqlnd_of *find_conversion(const char *extension) {
    HashTable *(*list)(void) = dlsym(RTLD_DEFAULT, "mysqlnd_reverse_api_get_api_list");
    MYSQLND_REVERSE_API *api =
        list ? zend_hash_str_find_ptr(list(), extension, strlen(extension)) : NULL;
    return api ? api->conversion_cb : NULL;
}

static bool find_libpq(void) {
    pq.status = (int (*)(const pg_conn *))dlsym(RTLD_DEFAULT, "PQtransactionStatus");
    pq.socket = (int (*)(const pg_conn *))dlsym(RTLD_DEFAULT, "PQsocket");
    pq.parameter =
        (const char *(*)(const pg_conn *, const char *))dlsym(RTLD_DEFAULT, "PQparameterStatus");
    pq.exec = (void *(*)(pg_conn *, const char *))dlsym(RTLD_DEFAULT, "PQexec");
    pq.clear = (void (*)(void *))dlsym(RTLD_DEFAULT, "PQclear");
    return pq.status && pq.socket && pq.parameter && pq.exec && pq.clear;
}

static void know(int fd, talk_language language, const void *driver) {
    if (fd >= 0 && known_count < CONNECTIONS_MAX) {
        known[known_count].fd = fd;
        known[known_count].language = language;
        known[known_count++].driver = driver;
    }
}

int samovar_connections_descriptor(php_stream *stream) {
    int fd = -1;
    const int how = PHP_STREAM_AS_FD_FOR_SELECT | PHP_STREAM_CAST_INTERNAL;
    return stream && php_stream_cast(stream, how, (void **)&fd, 0) == SUCCESS ? fd : -1;
}

/* Returns true if connection_protocols.c reads quoted text like the server: no character ends
 * with a byte that is a backslash. */
static bool is_plain_charset(const char *name) {
    return name && (strncasecmp(name, "utf8", 4) == 0 || strncasecmp(name, "latin", 5) == 0 ||
                    strcasecmp(name, "ascii") == 0 || strcasecmp(name, "binary") == 0 ||
                    strcasecmp(name, "sql_ascii") == 0);
}

static bool is_mysql_idle(const MYSQLND *connection) {
    const MYSQLND_CONN_DATA *data = connection->data;
    return data && data->state.state == CONN_READY && data->upsert_status &&
           !(data->upsert_status->server_status &
             (SERVER_STATUS_IN_TRANS | SERVER_MORE_RESULTS_EXISTS));
}

static void know_mysql(const MYSQLND *connection) {
    const MYSQLND_CONN_DATA *data = connection->data;
    if (is_mysql_idle(connection) &&
        !(data->upsert_status->server_status & SERVER_STATUS_NO_BACKSLASH_ESCAPES) &&
        data->charset && is_plain_charset(data->charset->name) && data->protocol_frame_codec &&
        !data->protocol_frame_codec->data->compressed && data->vio && data->vio->data) {
        know(samovar_connections_descriptor(data->vio->data->stream), TALK_MYSQL, connection);
    }
}

static void know_pgsql(pg_conn *connection) {
    if (!connection || pgsql_count == CONNECTIONS_MAX || !find_libpq()) {
        return;
    }
    pgsql[pgsql_count++] = connection;
    const char *strings = pq.parameter(connection, "standard_conforming_strings");
    if (pq.status(connection) == PQTRANS_IDLE && strings && strcmp(strings, "on") == 0 &&
        is_plain_charset(pq.parameter(connection, "client_encoding"))) {
        know(pq.socket(connection), TALK_PGSQL, connection);
    }
}

static void know_pdo(pdo_dbh_t *dbh, mysqlnd_of *of, zval *object) {
    const char *name = dbh->driver ? dbh->driver->driver_name : "";
    if (dbh->driver_data && strcmp(name, "pgsql") == 0) {
        know_pgsql(*(pg_conn **)dbh->driver_data); /* pdo_pgsql_db_handle begins with it */
    } else if (dbh->driver_data && strcmp(name, "mysql") == 0 && of) {
        const MYSQLND *connection = of(object);
        if (connection) {
            know_mysql(connection);
        }
    }
}

static bool is_live_stream(const void *stream) {
    zval *entry;
    HashTable *const lists[] = {&EG(regular_list), &EG(persistent_list)};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        ZEND_HASH_FOREACH_VAL(lists[i], entry) {
            if (Z_TYPE_P(entry) == IS_RESOURCE && Z_RES_P(entry)->ptr == stream &&
                (Z_RES_P(entry)->type == php_file_le_stream() ||
                 Z_RES_P(entry)->type == php_file_le_pstream())) {
                return true;
            }
        }
        ZEND_HASH_FOREACH_END();
    }
    return false;
}

/* phpredis, library.h: redis_object begins with its RedisSock, and RedisSock with its stream. */
static void know_redis(void *inner) {
    php_stream **sock = *(php_stream ***)inner;
    if (sock && is_live_stream(*sock)) {
        know(samovar_connections_descriptor(*sock), TALK_REDIS, NULL);
    }
}

static void *inner_of(zend_object *object) {
    return (char *)object - object->handlers->offset;
}

/* Classes that do not exist are NULL. */
static bool is_a(const zend_object *object, const zend_class_entry *class) {
    return class && instanceof_function(object->ce, class);
}

void samovar_connections_remember(const char *treatment) {
    const zend_class_entry *pdo_class = class_named("pdo"), *mysqli_class = class_named("mysqli"),
                           *redis = class_named("redis"),
                           *pgsql_class = class_named("pgsql\\connection");
    mysqlnd_of *const mysqlnd_of_mysqli = find_conversion("mysqli"), *const mysqlnd_of_pdo =
                                                                         find_conversion(
                                                                             "pdo_mysql");
    mode = treatment;
    pdo_count = mysql_count = pgsql_count = known_count = 0;
    for (uint32_t i = 1; i < EG(objects_store).top; i++) {
        zend_object *object = EG(objects_store).object_buckets[i];
        if (!IS_OBJ_VALID(object)) {
            continue;
        }
        zval zv;
        ZVAL_OBJ(&zv, object);
        if (is_a(object, pdo_class) && pdo_count < CONNECTIONS_MAX) {
            pdo[pdo_count++] = php_pdo_dbh_fetch_inner(object);
            know_pdo(pdo[pdo_count - 1], mysqlnd_of_pdo, &zv);
        }
        if (mysqlnd_of_mysqli && is_a(object, mysqli_class) && mysql_count < CONNECTIONS_MAX) {
            MYSQLND *connection = mysqlnd_of_mysqli(&zv);
            if (connection) {
                mysql[mysql_count++] = connection;
                know_mysql(connection);
            }
        }
        if (is_a(object, pgsql_class)) {
            know_pgsql(*(pg_conn **)inner_of(object)); /* pgsql_link_handle begins with it */
        }
        if (is_a(object, redis)) {
            know_redis(inner_of(object));
        }
    }
    samovar_boot_traffic_retain(samovar_connections_know);
}

/* Like pdo_is_in_transaction() of pdo_dbh.c. */
static bool is_in_transaction(pdo_dbh_t *dbh) {
    return dbh->methods->in_transaction ? dbh->methods->in_transaction(dbh) : dbh->in_txn;
}

/* False if the request has closed one, which is then freed. The worker leaves, and the server
 * ends open transactions. */
static bool are_all_there(void) {
    return !samovar_persistent || samovar_persistent->leave == LEAVE_NOT;
}

void samovar_connections_end_transactions(void) {
    if (!are_all_there()) {
        return;
    }
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
    for (uint32_t i = 0; i < pgsql_count; i++) {
        const int status = pq.status(pgsql[i]);
        if (status == PQTRANS_INTRANS || status == PQTRANS_INERROR) {
            pq.clear(pq.exec(pgsql[i], "ROLLBACK"));
        }
    }
}

bool samovar_connections_know(int fd) {
    for (uint32_t i = 0; i < known_count; i++) {
        if (known[i].fd == fd) {
            return true;
        }
    }
    return false;
}

void samovar_connections_begin(void) {
    const bool leaves = strcmp(mode, "leave") == 0, resets = strcmp(mode, "reset") == 0;
    for (uint32_t i = 0; !leaves && i < known_count; i++) {
        samovar_talk_begin(known[i].fd, known[i].language, resets);
    }
    samovar_boot_traffic_retain(NULL); /* It has been read. */
}

static bool is_driver_idle(talk_language language, const void *driver) {
    switch (language) {
    case TALK_MYSQL:
        return is_mysql_idle(driver);
    case TALK_PGSQL:
        return pq.status(driver) == PQTRANS_IDLE;
    default:
        return true;
    }
}

/* Called before memory is restored, while the drivers have the state that the request has left. */
void samovar_connections_settle(void) {
    for (uint32_t i = 0; samovar_persistent && are_all_there() && i < known_count; i++) {
        if (is_driver_idle(known[i].language, known[i].driver) &&
            samovar_talk_return(known[i].fd)) {
            samovar_talk_settle(known[i].fd);
        }
    }
}
