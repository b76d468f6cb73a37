/* pinba_script_name_set(), pinba_tag_set(), pinba_flush() and the other functions for the data
 * of a request. The script name becomes the request's route, its tags become tags of the request
 * accounting. Host, site and schema are only returned to code that reads them with these
 * functions. */
#include "functions/pinba.h"
#include "sapi/sapi.h"
#include "functions/arginfo/pinba_constants.h"
#include "functions/arginfo/prototypes.h"
#include "functions/arginfo/pinba_functions.h"
#include <unistd.h>

SAMOVAR_OF_REQUEST pinba_request samovar_pinba;

/* ---- a request ----------------------------------------------------------------------------- */

static void forget_name(zend_string **name) {
    if (*name) {
        zend_string_release(*name);
        *name = NULL;
    }
}

static void forget_tags(void) {
    if (samovar_pinba.has_tags) {
        zend_hash_destroy(&samovar_pinba.tags);
        samovar_pinba.has_tags = false;
    }
}

static void forget(void) {
    forget_name(&samovar_pinba.script_name);
    forget_name(&samovar_pinba.hostname);
    forget_name(&samovar_pinba.server_name);
    forget_name(&samovar_pinba.schema);
    forget_tags();
    samovar_pinba.request_time = 0;
}

void samovar_pinba_begin(void) {
    forget();
    samovar_pinba.is_over = false;
}

void samovar_pinba_end(void) {
    zend_string *name;
    zval *value;
    if (samovar_pinba.has_tags) {
        ZEND_HASH_FOREACH_STR_KEY_VAL(&samovar_pinba.tags, name, value) {
            samovar_request_accounting_tag(ZSTR_VAL(name), ZSTR_LEN(name), Z_STRVAL_P(value),
                                           Z_STRLEN_P(value));
        }
        ZEND_HASH_FOREACH_END();
    }
    forget();
    samovar_pinba.is_over = true;
}

void samovar_pinba_startup(int module_number) {
    if (zend_hash_str_exists(&module_registry, ZEND_STRL("pinba"))) {
        return;
    }
    const int type = MODULE_PERSISTENT;
    SAMOVAR_REGISTER_CONSTANTS_OF_PINBA();
    zend_register_functions(NULL, samovar_pinba_functions, NULL, type);
    samovar_pinba_timers_startup(module_number);
}

void samovar_pinba_flush(bool only_stopped) {
    samovar_timer *next;
    for (samovar_timer *t = samovar_timers_first(); t; t = next) {
        next = t->next;
        if (t->resource && !(only_stopped && t->is_running)) {
            samovar_timer_stop(t);
            samovar_timer_tell(t);
            samovar_timer_unlist(t);
            zend_list_delete(t->resource);
        }
    }
}

/* ---- names --------------------------------------------------------------------------------- */

static void set_name(INTERNAL_FUNCTION_PARAMETERS, zend_string **to) {
    zend_string *name;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_STR(name)
    ZEND_PARSE_PARAMETERS_END();
    forget_name(to);
    *to = zend_string_copy(name);
    RETURN_TRUE;
}

static void name_route(const zend_string *name) {
    samovar_request_accounting_route(ZSTR_VAL(name), ZSTR_LEN(name));
}

PHP_FUNCTION(pinba_script_name_set) {
    set_name(INTERNAL_FUNCTION_PARAM_PASSTHRU, &samovar_pinba.script_name);
    if (!EG(exception)) {
        name_route(samovar_pinba.script_name);
    }
}

PHP_FUNCTION(pinba_hostname_set) {
    set_name(INTERNAL_FUNCTION_PARAM_PASSTHRU, &samovar_pinba.hostname);
}

PHP_FUNCTION(pinba_server_name_set) {
    set_name(INTERNAL_FUNCTION_PARAM_PASSTHRU, &samovar_pinba.server_name);
}

PHP_FUNCTION(pinba_schema_set) {
    set_name(INTERNAL_FUNCTION_PARAM_PASSTHRU, &samovar_pinba.schema);
}

PHP_FUNCTION(pinba_request_time_set) {
    double time;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_DOUBLE(time)
    ZEND_PARSE_PARAMETERS_END();
    if (!(time >= 0)) {
        php_error_docref(NULL, E_WARNING,
                         "negative request time value passed (%f), changing it to 0", time);
        time = 0;
    }
    samovar_pinba.request_time = time;
    RETURN_TRUE;
}

/* ---- tags of the request ------------------------------------------------------------------- */

PHP_FUNCTION(pinba_tag_set) {
    zend_string *name, *value;
    ZEND_PARSE_PARAMETERS_START(2, 2)
    Z_PARAM_STR(name)
    Z_PARAM_STR(value)
    ZEND_PARSE_PARAMETERS_END();
    if (ZSTR_LEN(name) == 0) {
        php_error_docref(NULL, E_WARNING, "tag name cannot be empty");
        RETURN_FALSE;
    }
    if (!samovar_pinba.has_tags) {
        zend_hash_init(&samovar_pinba.tags, 8, NULL, ZVAL_PTR_DTOR, 0);
        samovar_pinba.has_tags = true;
    }
    zval text;
    ZVAL_STR_COPY(&text, value);
    zend_hash_update(&samovar_pinba.tags, name, &text);
    RETURN_TRUE;
}

PHP_FUNCTION(pinba_tag_get) {
    zend_string *name;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_STR(name)
    ZEND_PARSE_PARAMETERS_END();
    const zval *value = samovar_pinba.has_tags ? zend_hash_find(&samovar_pinba.tags, name) : NULL;
    if (!value) {
        RETURN_FALSE;
    }
    RETURN_STR_COPY(Z_STR_P(value));
}

PHP_FUNCTION(pinba_tag_delete) {
    zend_string *name;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_STR(name)
    ZEND_PARSE_PARAMETERS_END();
    RETURN_BOOL(samovar_pinba.has_tags && zend_hash_del(&samovar_pinba.tags, name) == SUCCESS);
}

static void get_tags(zval *to) {
    if (samovar_pinba.has_tags) {
        ZVAL_ARR(to, zend_array_dup(&samovar_pinba.tags));
    } else {
        array_init(to);
    }
}

PHP_FUNCTION(pinba_tags_get) {
    ZEND_PARSE_PARAMETERS_NONE();
    get_tags(return_value);
}

/* ---- all data ------------------------------------------------------------------------------ */

static void add_name(zval *to, const char *key, const zend_string *name, const char *otherwise) {
    add_assoc_string(to, key, name ? ZSTR_VAL(name) : otherwise);
}

static void add_timers(zval *to) {
    zval timers, info;
    array_init(&timers);
    for (const samovar_timer *t = samovar_timers_first(); t; t = t->next) {
        if (t->resource) {
            samovar_pinba_timer_info(t, &info);
            add_next_index_zval(&timers, &info);
        }
    }
    add_assoc_zval(to, "timers", &timers);
}

const char *samovar_pinba_this_host(char *to) {
    if (gethostname(to, HOST_BYTES) != 0) {
        to[0] = 0;
    }
    to[HOST_BYTES - 1] = 0;
    return to;
}

double samovar_pinba_request_time(const samovar_so_far *so_far) {
    return samovar_pinba.request_time > 0 ? samovar_pinba.request_time
                                          : (double)so_far->wall_ns / 1e9;
}

PHP_FUNCTION(pinba_get_info) {
    ZEND_PARSE_PARAMETERS_NONE();
    const samovar_so_far so_far = samovar_request_so_far();
    char host[HOST_BYTES];
    zval tags;
    array_init(return_value);
    add_assoc_long(return_value, "mem_peak_usage", (zend_long)zend_memory_peak_usage(1));
    add_assoc_double(return_value, "req_time", samovar_pinba_request_time(&so_far));
    add_assoc_double(return_value, "ru_utime", (double)so_far.cpu_ns / 1e9);
    add_assoc_double(return_value, "ru_stime", 0);
    add_assoc_long(return_value, "req_count", (zend_long)so_far.requests + 1);
    add_assoc_long(return_value, "doc_size", (zend_long)so_far.response_bytes);
    add_name(return_value, "schema", samovar_pinba.schema, "");
    add_name(return_value, "server_name", samovar_pinba.server_name, "unknown");
    add_name(return_value, "script_name", samovar_pinba.script_name, "unknown");
    add_name(return_value, "hostname", samovar_pinba.hostname, samovar_pinba_this_host(host));
    add_timers(return_value);
    get_tags(&tags);
    add_assoc_zval(return_value, "tags", &tags);
}

PHP_FUNCTION(pinba_get_data) {
    zend_long flags = 0;
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_LONG(flags)
    ZEND_PARSE_PARAMETERS_END();
    RETURN_STR(samovar_pinba_packet((flags & PINBA_ONLY_STOPPED_TIMERS) != 0));
}

PHP_FUNCTION(pinba_flush) {
    zend_string *name = NULL;
    zend_long flags = 0;
    ZEND_PARSE_PARAMETERS_START(0, 2)
    Z_PARAM_OPTIONAL
    Z_PARAM_STR_OR_NULL(name)
    Z_PARAM_LONG(flags)
    ZEND_PARSE_PARAMETERS_END();
    if (name && ZSTR_LEN(name) > 0) {
        name_route(name);
    }
    samovar_pinba_flush((flags & PINBA_FLUSH_ONLY_STOPPED_TIMERS) != 0);
    if (flags & PINBA_FLUSH_RESET_DATA) {
        forget_tags();
    }
    RETURN_TRUE;
}

PHP_FUNCTION(pinba_reset) {
    ZEND_PARSE_PARAMETERS_NONE();
    samovar_timer *next;
    for (samovar_timer *t = samovar_timers_first(); t; t = next) {
        next = t->next;
        if (t->resource) {
            samovar_timer_unlist(t);
            samovar_pinba_drop(t);
        }
    }
    forget_tags();
}
