/* Checks whether the peers of connections of known drivers are still there. */
#include "functions/pooled.h"
#include <zend_exceptions.h>
#include <string.h>
#include <zend_interfaces.h>

enum { ASKED_AFTER_NS = 1000000000 };

/* A method and its argument, or a function that gets the object. */
static const struct {
    const char *class, *method, *argument, *function;
} known[] = {
    {"pdo", "query", "SELECT 1", NULL},
    {"mysqli", "query", "SELECT 1", NULL},
    {"redis", "ping", NULL, NULL},
    {"memcached", "getversion", NULL, NULL},
    {"pgsql\\connection", NULL, NULL, "pg_ping"},
};

bool samovar_pooled_was_good(zval *said) {
    bool is_good = Z_TYPE_P(said) != IS_FALSE && Z_TYPE_P(said) != IS_UNDEF;
    if (EG(exception)) {
        is_good = false;
        if (!zend_is_unwind_exit(EG(exception)) && !zend_is_graceful_exit(EG(exception))) {
            zend_clear_exception();
        }
    }
    zval_ptr_dtor(said);
    return is_good;
}

static bool ask_function(const char *name, zval *object) {
    zval function, said;
    ZVAL_UNDEF(&said);
    ZVAL_STRING(&function, name);
    call_user_function(NULL, NULL, &function, &said, 1, object);
    zval_ptr_dtor(&function);
    return samovar_pooled_was_good(&said);
}

static bool ask_method(zval *object, const char *name, const char *argument) {
    zval said, text;
    ZVAL_UNDEF(&said);
    ZVAL_UNDEF(&text);
    if (argument) {
        ZVAL_STRING(&text, argument);
    }
    zend_call_method(Z_OBJ_P(object), Z_OBJCE_P(object), NULL, name, strlen(name), &said,
                     argument ? 1 : 0, argument ? &text : NULL, NULL);
    zval_ptr_dtor(&text);
    return samovar_pooled_was_good(&said);
}

static bool ask_object(zval *object) {
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const zend_class_entry *class =
            zend_hash_str_find_ptr(CG(class_table), known[i].class, strlen(known[i].class));
        if (class && instanceof_function(Z_OBJCE_P(object), class)) {
            return known[i].method ? ask_method(object, known[i].method, known[i].argument)
                                   : ask_function(known[i].function, object);
        }
    }
    return true;
}

static bool ask_stream(zval *resource) {
    if (!zend_fetch_resource2(Z_RES_P(resource), NULL, php_file_le_stream(),
                              php_file_le_pstream())) {
        return false; /* It was closed. */
    }
    zval function, said;
    ZVAL_STRING(&function, "feof");
    call_user_function(NULL, NULL, &function, &said, 1, resource);
    zval_ptr_dtor(&function);
    return Z_TYPE(said) == IS_FALSE;
}

bool samovar_pooled_responses(zval *object, uint64_t idle_ns) {
    if (Z_TYPE_P(object) == IS_RESOURCE) {
        return ask_stream(object);
    }
    if (idle_ns < ASKED_AFTER_NS) {
        return true;
    }
    const int reporting = EG(error_reporting);
    EG(error_reporting) &= E_FATAL_ERRORS; /* A lost connection is no error here. */
    const bool responses = ask_object(object);
    EG(error_reporting) = reporting;
    return responses;
}
