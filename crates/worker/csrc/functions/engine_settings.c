/* Restores state of PHP's modules that functions set and that is no ini setting. php-fpm restores
 * it at the end of each request, with the modules' own functions. Those would also undo the
 * settings that the application has made at boot.
 *
 * The functions are hooked. The first call of one in a request asks for the present value, which
 * is that of serve(), and the end of the request sets it again. Modules may be shared objects, so
 * both are calls of PHP's functions. A request without such calls pays for one comparison. */
#include "functions/engine_settings.h"
#include "sapi/sapi.h"
#include <zend_exceptions.h>
#include <ext/date/php_date.h>
#include <ext/json/php_json.h>
#include <ext/pcre/php_pcre.h>
#include <ext/random/php_random.h>
#include <ext/standard/basic_functions.h>
#include <ext/standard/file.h>

/* How the value is asked for, and set. */
typedef enum {
    ASK_ITSELF,    /* the function returns the value if called without arguments */
    ASK_WITH_NULL, /* or with NULL */
    ASK_OTHER,     /* another function returns it */
    BY_KEY,        /* the function returns the value of a key if called with it alone */
    BY_CALLBACK,   /* same, for assert_options(ASSERT_CALLBACK) */
    FORMER,        /* the function returns the former value */
    CONTEXT,       /* nothing returns it: the arguments at boot are used, or a new stream context */
    SYSLOG,        /* or closelog() */
    ZONE,          /* fields of the engine */
    SEED,
    TICKS,
    BIG_SEED, /* gets a new random seed */
    SEARCH,   /* gets an empty text */
    REPORT    /* property of a mysqli_driver */
} manner;

/* Function, manner, other function. */
#define ROWS(X)                                                                                    \
    X(assert_options, BY_CALLBACK, NULL)                                                           \
    X(bindtextdomain, BY_KEY, NULL)                                                                \
    X(date_default_timezone_set, ZONE, NULL)                                                       \
    X(gmp_random_seed, BIG_SEED, NULL)                                                             \
    X(libxml_disable_entity_loader, FORMER, NULL)                                                  \
    X(libxml_set_external_entity_loader, ASK_OTHER, "libxml_get_external_entity_loader")           \
    X(libxml_set_streams_context, CONTEXT, "stream_context_create")                                \
    X(libxml_use_internal_errors, ASK_ITSELF, "libxml_clear_errors")                               \
    X(mb_detect_order, ASK_ITSELF, NULL)                                                           \
    X(mb_ereg_search_init, SEARCH, NULL)                                                           \
    X(mb_http_output, ASK_ITSELF, NULL)                                                            \
    X(mb_internal_encoding, ASK_ITSELF, NULL)                                                      \
    X(mb_regex_encoding, ASK_ITSELF, NULL)                                                         \
    X(mb_regex_set_options, ASK_ITSELF, NULL)                                                      \
    X(mb_substitute_character, ASK_ITSELF, NULL)                                                   \
    X(mt_srand, SEED, NULL)                                                                        \
    X(mysqli_report, REPORT, NULL)                                                                 \
    X(openlog, SYSLOG, "closelog")                                                                 \
    X(pcntl_async_signals, ASK_ITSELF, NULL)                                                       \
    X(register_tick_function, TICKS, NULL)                                                         \
    X(snmp_set_quick_print, ASK_OTHER, "snmp_get_quick_print")                                     \
    X(snmp_set_valueretrieval, ASK_OTHER, "snmp_get_valueretrieval")                               \
    X(spl_autoload_extensions, ASK_ITSELF, NULL)                                                   \
    X(srand, SEED, NULL)                                                                           \
    X(textdomain, ASK_WITH_NULL, NULL)                                                             \
    X(use_soap_error_handler, FORMER, NULL)

enum {
#define NUMBER(name, how, other) ROW_##name,
    ROWS(NUMBER)
#undef NUMBER
        ROW_COUNT
};
enum { ARGUMENTS_MAX = 3, CALLBACK = 2 /* ASSERT_CALLBACK */ };

#define HANDLER(name, how, other) static ZEND_NAMED_FUNCTION(hook_##name);
ROWS(HANDLER)
#undef HANDLER

typedef struct {
    const char *name;
    manner how;
    const char *other;
    zif_handler hook;
    zend_function *function, *other_function;
    zif_handler inner;
    bool is_changed;
    /* The value before the request's first change; BY_KEY: an array of values. */
    zval before;
    /* Arguments of the boot's last call. */
    zval arguments[ARGUMENTS_MAX];
    uint32_t argument_count;
} row;

static row rows[] = {
#define ROW(of, manner_, other_) {.name = #of, .how = manner_, .other = other_, .hook = hook_##of},
    ROWS(ROW)
#undef ROW
};

/* The zone that date_default_timezone_set() has set, in the globals of ext/date, which exports
 * them to no other module. NULL: it has set none. */
static char **zone;

/* True if the present request has called one of the functions. */
static bool has_changes;
static bool is_restoring;

/* ---- calls --------------------------------------------------------------------------------- */

/* Warnings, for example that a function is deprecated, are not the application's. */
static void call(zend_function *function, zval *returned, uint32_t count, zval *arguments) {
    const int reporting = EG(error_reporting), handled = EG(user_error_handler_error_reporting);
    const bool was_restoring = is_restoring;
    ZVAL_NULL(returned);
    if (!function) {
        return;
    }
    EG(error_reporting) = EG(user_error_handler_error_reporting) = 0;
    is_restoring = true;
    zend_call_known_function(function, NULL, NULL, returned, count, arguments, NULL);
    is_restoring = was_restoring;
    EG(error_reporting) = reporting;
    EG(user_error_handler_error_reporting) = handled;
    if (EG(exception)) {
        zend_clear_exception();
    }
}

static void set(row *r, uint32_t count, zval *arguments) {
    zval returned;
    call(r->function, &returned, count, arguments);
    zval_ptr_dtor(&returned);
}

/* ---- before a change ----------------------------------------------------------------------- */

static void read_report(zval *to) {
    zend_class_entry *ce =
        zend_hash_str_find_ptr(CG(class_table), "mysqli_driver", sizeof "mysqli_driver" - 1);
    zval driver, room;
    ZVAL_NULL(to);
    if (ce && object_init_ex(&driver, ce) == SUCCESS) {
        ZVAL_COPY(to, zend_read_property(ce, Z_OBJ(driver), "report_mode", sizeof "report_mode" - 1,
                                         true, &room));
        zval_ptr_dtor(&driver);
    }
}

static void ask(row *r) {
    zval null;
    ZVAL_NULL(&null);
    switch (r->how) {
    case ASK_ITSELF:
        call(r->function, &r->before, 0, NULL);
        break;
    case ASK_WITH_NULL:
        call(r->function, &r->before, 1, &null);
        break;
    case ASK_OTHER:
        call(r->other_function, &r->before, 0, NULL);
        break;
    case BY_KEY:
    case BY_CALLBACK:
        array_init(&r->before);
        break;
    case ZONE:
        if (zone && *zone) {
            ZVAL_STRING(&r->before, *zone);
        } else {
            ZVAL_NULL(&r->before);
        }
        break;
    case TICKS:
        ZVAL_LONG(&r->before, BG(user_tick_functions)
                                  ? (zend_long)zend_llist_count(BG(user_tick_functions))
                                  : 0);
        break;
    case REPORT:
        read_report(&r->before);
        break;
    default:
        ZVAL_NULL(&r->before);
        break;
    }
}

static void ask_for_key(row *r, zval *key) {
    zval value;
    if (Z_TYPE_P(key) == IS_LONG && !zend_hash_index_exists(Z_ARRVAL(r->before), Z_LVAL_P(key))) {
        call(r->function, &value, 1, key);
        zend_hash_index_add_new(Z_ARRVAL(r->before), Z_LVAL_P(key), &value);
    } else if (Z_TYPE_P(key) == IS_STRING && !zend_hash_exists(Z_ARRVAL(r->before), Z_STR_P(key))) {
        call(r->function, &value, 1, key);
        zend_hash_add_new(Z_ARRVAL(r->before), Z_STR_P(key), &value);
    }
}

/* Returns true if the call may change the value, and does not only return it. */
static bool is_change(const row *r, const zend_execute_data *execute_data) {
    const uint32_t count = ZEND_NUM_ARGS();
    const zval *first = count > 0 ? ZEND_CALL_ARG(execute_data, 1) : NULL;
    const zval *second = count > 1 ? ZEND_CALL_ARG(execute_data, 2) : NULL;
    switch (r->how) {
    case ASK_ITSELF:
    case ASK_WITH_NULL:
        return first && Z_TYPE_P(first) != IS_NULL;
    case BY_KEY:
        return second && Z_TYPE_P(second) != IS_NULL;
    case BY_CALLBACK:
        return second && Z_TYPE_P(first) == IS_LONG && Z_LVAL_P(first) == CALLBACK;
    default:
        return true;
    }
}

static void keep_arguments(row *r, const zend_execute_data *execute_data) {
    for (uint32_t i = 0; i < r->argument_count; i++) {
        zval_ptr_dtor(&r->arguments[i]);
    }
    r->argument_count = MIN(ZEND_NUM_ARGS(), ARGUMENTS_MAX);
    for (uint32_t i = 0; i < r->argument_count; i++) {
        ZVAL_COPY_DEREF(&r->arguments[i], ZEND_CALL_ARG(execute_data, i + 1));
    }
}

static void note(row *r, const zend_execute_data *execute_data) {
    if (!r->is_changed) {
        ask(r);
        r->is_changed = has_changes = true;
    }
    if (r->how == BY_KEY || r->how == BY_CALLBACK) {
        ask_for_key(r, ZEND_CALL_ARG(execute_data, 1));
    }
}

static void around(int number, INTERNAL_FUNCTION_PARAMETERS) {
    row *r = &rows[number];
    const bool is_boot = samovar_is_boot() && !samovar_serving;
    const bool is_first = !r->is_changed;
    const bool changes = samovar_serving && !is_restoring && is_change(r, execute_data);
    if (changes) {
        note(r, execute_data);
    } else if (is_boot && (r->how == CONTEXT || r->how == SYSLOG)) {
        keep_arguments(r, execute_data);
    }
    r->inner(INTERNAL_FUNCTION_PARAM_PASSTHRU);
    if (changes && is_first && r->how == FORMER) {
        ZVAL_COPY(&r->before, return_value);
    }
}

#define HANDLER(name, how, other)                                                                  \
    static ZEND_NAMED_FUNCTION(hook_##name) {                                                      \
        around(ROW_##name, INTERNAL_FUNCTION_PARAM_PASSTHRU);                                      \
    }
ROWS(HANDLER)
#undef HANDLER

static zend_function *function_named(const char *name) {
    zend_function *f = name ? zend_hash_str_find_ptr(CG(function_table), name, strlen(name)) : NULL;
    return f && f->type == ZEND_INTERNAL_FUNCTION ? f : NULL;
}

void samovar_engine_settings_startup(void) {
    const zend_module_entry *date = zend_hash_str_find_ptr(&module_registry, ZEND_STRL("date"));
    if (date && date->globals_ptr) {
        zone = &((zend_date_globals *)date->globals_ptr)->timezone;
    }
    for (int i = 0; i < ROW_COUNT; i++) {
        row *r = &rows[i];
        r->function = function_named(r->name);
        r->other_function = function_named(r->other);
        if (r->function) {
            r->inner = r->function->internal_function.handler;
            r->function->internal_function.handler = r->hook;
        }
    }
}

/* ---- after a request ----------------------------------------------------------------------- */

static void set_keys(row *r) {
    zend_string *name;
    zend_ulong number;
    zval *value;
    ZEND_HASH_FOREACH_KEY_VAL(Z_ARRVAL(r->before), number, name, value) {
        zval arguments[2];
        if (name) {
            ZVAL_STR(&arguments[0], name);
        } else {
            ZVAL_LONG(&arguments[0], (zend_long)number);
        }
        ZVAL_COPY_VALUE(&arguments[1], value);
        set(r, 2, arguments);
    }
    ZEND_HASH_FOREACH_END();
}

static void set_zone(const row *r) {
    if (!zone) {
        return;
    }
    if (*zone) {
        efree(*zone);
    }
    *zone = Z_TYPE(r->before) == IS_STRING ? estrdup(Z_STRVAL(r->before)) : NULL;
}

static void remove_ticks(const row *r) {
    zend_llist *all = BG(user_tick_functions);
    while (all && (zend_long)zend_llist_count(all) > Z_LVAL(r->before)) {
        zend_llist_remove_tail(all);
    }
}

static void set_as_at_boot(row *r) {
    zval made;
    if (r->argument_count > 0) {
        set(r, r->argument_count, r->arguments);
        return;
    }
    call(r->other_function, &made, 0, NULL);
    if (r->how == CONTEXT) {
        set(r, 1, &made);
    }
    zval_ptr_dtor(&made);
}

static void restore(row *r) {
    zval argument;
    switch (r->how) {
    case BY_KEY:
    case BY_CALLBACK:
        set_keys(r);
        break;
    case CONTEXT:
    case SYSLOG:
        set_as_at_boot(r);
        break;
    case ZONE:
        set_zone(r);
        break;
    case SEED:
        RANDOM_G(mt19937_seeded) = false; /* It seeds itself at its next use. */
        break;
    case TICKS:
        remove_ticks(r);
        break;
    case BIG_SEED:
        ZVAL_LONG(&argument, 0);
        if (php_random_bytes_silent(&Z_LVAL(argument), sizeof Z_LVAL(argument)) == SUCCESS) {
            set(r, 1, &argument);
        }
        break;
    case SEARCH:
        ZVAL_EMPTY_STRING(&argument);
        set(r, 1, &argument);
        break;
    default:
        set(r, 1, &r->before);
        break;
    }
}

/* ---- without hooks ------------------------------------------------------------------------- */

static struct {
    php_stream_context *context;
    zval options;
    php_stream_notifier *notifier;
    bool collects_errors; /* of libxml */
} base;

/* A context that nothing has set has no options. Functions of files create one. */
static void restore_context(void) {
    php_stream_context *now = FG(default_context);
    if (!now) {
        return;
    }
    if (now == base.context ? Z_ARR(now->options) != Z_ARR(base.options)
                            : zend_hash_num_elements(Z_ARRVAL(now->options)) > 0) {
        zval_ptr_dtor(&now->options);
        if (now == base.context) {
            ZVAL_COPY(&now->options, &base.options);
        } else {
            array_init(&now->options);
        }
    }
    if (now->notifier && now->notifier != base.notifier) {
        php_stream_notification_free(now->notifier);
        now->notifier = NULL;
    }
}

/* The last errors of modules of the engine itself, and the text of strtok(). */
static void forget_results(void) {
    if (BG(strtok_string)) {
        zend_string_release(BG(strtok_string));
        BG(strtok_string) = NULL;
        BG(strtok_last) = NULL;
    }
    if (JSON_G(error_code) != PHP_JSON_ERROR_NONE) {
        JSON_G(error_code) = PHP_JSON_ERROR_NONE;
    }
    if (PCRE_G(error_code) != PHP_PCRE_NO_ERROR) {
        PCRE_G(error_code) = PHP_PCRE_NO_ERROR;
    }
}

/* Errors of libxml contain parts of the document. */
static void forget_libxml_errors(void) {
    row *r = &rows[ROW_libxml_use_internal_errors];
    zval returned;
    if (r->is_changed || base.collects_errors) {
        call(r->other_function, &returned, 0, NULL);
    }
}

/* ---- save, restore, drop ------------------------------------------------------------------- */

void samovar_engine_settings_save(void) {
    zval collects;
    base.context = FG(default_context);
    ZVAL_UNDEF(&base.options);
    base.notifier = NULL;
    if (base.context) {
        ZVAL_COPY(&base.options, &base.context->options);
        base.notifier = base.context->notifier;
    }
    call(rows[ROW_libxml_use_internal_errors].function, &collects, 0, NULL);
    base.collects_errors = Z_TYPE(collects) == IS_TRUE;
}

void samovar_engine_settings_restore(void) {
    forget_results();
    restore_context();
    forget_libxml_errors();
    if (EXPECTED(!has_changes)) {
        return;
    }
    has_changes = false;
    for (int i = 0; i < ROW_COUNT; i++) {
        row *r = &rows[i];
        if (r->is_changed) {
            r->is_changed = false;
            restore(r);
            zval_ptr_dtor(&r->before);
            ZVAL_UNDEF(&r->before);
        }
    }
}

void samovar_engine_settings_drop(void) {
    zval_ptr_dtor(&base.options);
    ZVAL_UNDEF(&base.options);
    for (int i = 0; i < ROW_COUNT; i++) {
        for (uint32_t n = 0; n < rows[i].argument_count; n++) {
            zval_ptr_dtor(&rows[i].arguments[n]);
        }
        rows[i].argument_count = 0;
    }
}
