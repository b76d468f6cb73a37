/* Samovar\queue() and Samovar\Queue: push jobs to the server. */
#include "functions/jobs.h"
#include "functions/shared.h"
#include "sapi/variables.h"
#include <zend_exceptions.h>
#include <zend_smart_str.h>
#include <ext/json/php_json.h>
#include <ext/spl/spl_exceptions.h>
#include "functions/arginfo/prototypes.h"
#include "functions/arginfo/queue.h"

enum { PAYLOAD_DEPTH_MAX = 64 };

typedef struct {
    zend_string *name;
    zend_object std;
} queue_object;

static zend_class_entry *ce;
static zend_object_handlers object_handlers;

static queue_object *object_of(zend_object *std) {
    return (queue_object *)((char *)std - XtOffsetOf(queue_object, std));
}

static zend_object *create(zend_class_entry *type) {
    queue_object *o = zend_object_alloc(sizeof *o, type);
    zend_object_std_init(&o->std, type);
    o->std.handlers = &object_handlers;
    o->name = ZSTR_EMPTY_ALLOC();
    return &o->std;
}

static void free_object(zend_object *std) {
    zend_string_release(object_of(std)->name);
    zend_object_std_dtor(std);
}

ZEND_FUNCTION(Samovar_queue) {
    zend_string *name;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_STR(name)
    ZEND_PARSE_PARAMETERS_END();
    object_init_ex(return_value, ce);
    object_of(Z_OBJ_P(return_value))->name = zend_string_copy(name);
}

static ZEND_METHOD(Samovar_Queue, __construct) {
    ZEND_PARSE_PARAMETERS_NONE();
}

/* ---- payloads ------------------------------------------------------------------------------ */

/* Returns the first value that JSON cannot represent, or NULL. References and objects would come
 * back as something else. */
static const zval *refused_in(const zval *value, int depth) {
    ZVAL_DEREF(value);
    if (Z_TYPE_P(value) <= IS_STRING) {
        return NULL;
    }
    if (Z_TYPE_P(value) != IS_ARRAY || depth == PAYLOAD_DEPTH_MAX) {
        return value;
    }
    const zval *inner;
    ZEND_HASH_FOREACH_VAL(Z_ARRVAL_P(value), inner) {
        const zval *refused = refused_in(inner, depth + 1);
        if (refused) {
            return refused;
        }
    }
    ZEND_HASH_FOREACH_END();
    return NULL;
}

static bool encode(zval *payload, smart_str *to) {
    const zval *refused = refused_in(payload, 0);
    if (refused && Z_TYPE_P(refused) == IS_ARRAY) {
        zend_value_error("The payload of a job must not be nested deeper than %d arrays",
                         PAYLOAD_DEPTH_MAX);
        return false;
    }
    if (refused) {
        zend_type_error("The payload of a job contains a value of type %s\n"
                        "hint: push null, bools, numbers, strings and arrays of these",
                        zend_zval_type_name(refused));
        return false;
    }
    const int options =
        PHP_JSON_UNESCAPED_SLASHES | PHP_JSON_UNESCAPED_UNICODE | PHP_JSON_PRESERVE_ZERO_FRACTION;
    if (php_json_encode(to, payload, options) == FAILURE) {
        zend_value_error("The payload of a job must be UTF-8 text and finite numbers\n"
                         "hint: encode binary data with base64_encode()");
        return false;
    }
    smart_str_0(to);
    return true;
}

/* ---- push ---------------------------------------------------------------------------------- */

/* Converts seconds; negative: an error. */
static bool milliseconds(double seconds, uint64_t *to, const char *name) {
    if (!(seconds >= 0 && seconds <= 1e9)) {
        zend_value_error("%s must be between 0 and 1,000,000,000 seconds", name);
        return false;
    }
    *to = (uint64_t)(seconds * 1000.0 + 0.5);
    return true;
}

static bool set_numbers(samovar_new_job *job, zend_long priority, zend_long attempts) {
    if (priority < INT32_MIN || priority > INT32_MAX) {
        zend_value_error("priority must be between %d and %d", INT32_MIN, INT32_MAX);
        return false;
    }
    if (attempts < 0 || attempts > INT32_MAX) {
        zend_value_error("attempts must not be negative");
        return false;
    }
    job->priority = (int32_t)priority;
    job->attempts = (uint32_t)attempts;
    return true;
}

static bool add(zval *payload, samovar_new_job *job) {
    smart_str text = {0};
    const bool is_encoded = encode(payload, &text);
    if (is_encoded) {
        job->payload = ZSTR_VAL(text.s);
        job->payload_len = ZSTR_LEN(text.s);
        samovar_jobs_add(job);
    }
    smart_str_free(&text);
    return is_encoded;
}

/* Adds the trace of the request. Its variables never contain a trace of an untrusted client. */
static void add_trace(void) {
    size_t parent_len, state_len;
    const char *parent = samovar_request_variable(ZEND_STRL("TRACEPARENT"), &parent_len);
    if (parent) {
        const char *state = samovar_request_variable(ZEND_STRL("TRACESTATE"), &state_len);
        samovar_jobs_trace(parent, parent_len, state ? state : "", state ? state_len : 0);
    }
}

/* `after`: when the request has succeeded. */
static bool push_added(zval *object, bool after) {
    add_trace();
    const zend_string *name = object_of(Z_OBJ_P(object))->name;
    const int sent =
        (after ? samovar_jobs_defer : samovar_jobs_push)(ZSTR_VAL(name), ZSTR_LEN(name));
    if (sent != SAMOVAR_JOBS_STORED) {
        zend_class_entry *thrown =
            sent == SAMOVAR_JOBS_WRONG ? zend_ce_value_error : spl_ce_RuntimeException;
        zend_throw_exception(thrown, samovar_jobs_problem(), 0);
    }
    return sent == SAMOVAR_JOBS_STORED;
}

static void return_id(zval *to, int64_t id) {
    if (id > 0) {
        ZVAL_LONG(to, (zend_long)id);
    } else {
        ZVAL_NULL(to);
    }
}

static ZEND_METHOD(Samovar_Queue, push) {
    zval *payload;
    double delay = 0, uniqueFor = 0;
    zend_string *key = NULL;
    zend_long priority = 0, attempts = 0;
    bool afterResponse = false;
    ZEND_PARSE_PARAMETERS_START(1, 7)
    Z_PARAM_ZVAL(payload)
    Z_PARAM_OPTIONAL
    Z_PARAM_DOUBLE(delay)
    Z_PARAM_STR_OR_NULL(key)
    Z_PARAM_LONG(priority)
    Z_PARAM_LONG(attempts)
    Z_PARAM_DOUBLE(uniqueFor)
    Z_PARAM_BOOL(afterResponse)
    ZEND_PARSE_PARAMETERS_END();
    samovar_new_job job = {0};
    if (key) {
        job.key = ZSTR_VAL(key);
        job.key_len = ZSTR_LEN(key);
    }
    samovar_jobs_drop();
    if (milliseconds(delay, &job.delay_ms, "delay") &&
        milliseconds(uniqueFor, &job.unique_ms, "unique_for") &&
        set_numbers(&job, priority, attempts) && add(payload, &job) &&
        push_added(ZEND_THIS, afterResponse)) {
        return_id(return_value, samovar_jobs_id(0));
    }
}

/* ---- pushMany: options of single jobs ------------------------------------------------------ */

static bool seconds_of(const zend_string *name, zval *value, uint64_t *to) {
    if (Z_TYPE_P(value) != IS_LONG && Z_TYPE_P(value) != IS_DOUBLE) {
        zend_type_error("The option %s of a job must be a number of seconds, not %s",
                        ZSTR_VAL(name), zend_zval_type_name(value));
        return false;
    }
    return milliseconds(zval_get_double(value), to, ZSTR_VAL(name));
}

static bool long_of(const zend_string *name, zval *value, zend_long *to) {
    if (Z_TYPE_P(value) != IS_LONG) {
        zend_type_error("The option %s of a job must be an integer, not %s", ZSTR_VAL(name),
                        zend_zval_type_name(value));
        return false;
    }
    *to = Z_LVAL_P(value);
    return true;
}

/* The key is borrowed from the value. */
static bool key_of(zval *value, samovar_new_job *job) {
    if (Z_TYPE_P(value) != IS_STRING && Z_TYPE_P(value) != IS_NULL) {
        zend_type_error("The option key of a job must be a string or null, not %s",
                        zend_zval_type_name(value));
        return false;
    }
    job->key = Z_TYPE_P(value) == IS_STRING ? Z_STRVAL_P(value) : NULL;
    job->key_len = job->key ? Z_STRLEN_P(value) : 0;
    return true;
}

/* Sets one option. */
static bool set_option(samovar_new_job *job, const zend_string *name, zval *value) {
    zend_long number;
    if (zend_string_equals_literal(name, "key")) {
        return key_of(value, job);
    }
    if (zend_string_equals_literal(name, "delay")) {
        return seconds_of(name, value, &job->delay_ms);
    }
    if (zend_string_equals_literal(name, "uniqueFor")) {
        return seconds_of(name, value, &job->unique_ms);
    }
    if (zend_string_equals_literal(name, "priority")) {
        return long_of(name, value, &number) && set_numbers(job, number, job->attempts);
    }
    if (zend_string_equals_literal(name, "attempts")) {
        return long_of(name, value, &number) && set_numbers(job, job->priority, number);
    }
    zend_value_error("A job has no option %s\n"
                     "hint: the options are delay, key, priority, attempts and uniqueFor",
                     ZSTR_VAL(name));
    return false;
}

/* Sets the options of one job; `options`: NULL if it has none. */
static bool set_options(samovar_new_job *job, zval *options) {
    if (!options) {
        return true;
    }
    ZVAL_DEREF(options);
    if (Z_TYPE_P(options) != IS_ARRAY) {
        zend_type_error("The options of a job must be an array, not %s",
                        zend_zval_type_name(options));
        return false;
    }
    zend_string *name;
    zval *value;
    ZEND_HASH_FOREACH_STR_KEY_VAL(Z_ARRVAL_P(options), name, value) {
        if (!name) {
            zend_value_error("The options of a job must have names\n"
                             "hint: options: [['key' => 'a'], ['key' => 'b']]");
            return false;
        }
        ZVAL_DEREF(value);
        if (!set_option(job, name, value)) {
            return false;
        }
    }
    ZEND_HASH_FOREACH_END();
    return true;
}

/* Returns the options of the payload at this key of the array. */
static zval *options_at(HashTable *options, const zend_string *name, zend_ulong number) {
    if (!options) {
        return NULL;
    }
    return name ? zend_hash_find(options, name) : zend_hash_index_find(options, number);
}

/* Adds all jobs. `common`: the options that each job has. */
static bool add_many(HashTable *payloads, HashTable *options, const samovar_new_job *common) {
    zend_ulong number;
    zend_string *name;
    zval *payload;
    uint32_t found = 0;
    ZEND_HASH_FOREACH_KEY_VAL(payloads, number, name, payload) {
        samovar_new_job job = *common;
        zval *own = options_at(options, name, number);
        found += own != NULL;
        if (!set_options(&job, own) || !add(payload, &job)) {
            return false;
        }
    }
    ZEND_HASH_FOREACH_END();
    if (options && found < zend_hash_num_elements(options)) {
        zend_value_error("options has a key that payloads does not have\n"
                         "hint: the options of a job have the key of its payload");
        return false;
    }
    return true;
}

static ZEND_METHOD(Samovar_Queue, pushMany) {
    HashTable *payloads, *options = NULL;
    double delay = 0;
    zend_long priority = 0, attempts = 0;
    bool afterResponse = false;
    ZEND_PARSE_PARAMETERS_START(1, 6)
    Z_PARAM_ARRAY_HT(payloads)
    Z_PARAM_OPTIONAL
    Z_PARAM_DOUBLE(delay)
    Z_PARAM_LONG(priority)
    Z_PARAM_LONG(attempts)
    Z_PARAM_BOOL(afterResponse)
    Z_PARAM_ARRAY_HT(options)
    ZEND_PARSE_PARAMETERS_END();
    array_init(return_value);
    samovar_new_job job = {0};
    if (!milliseconds(delay, &job.delay_ms, "delay") || !set_numbers(&job, priority, attempts)) {
        return;
    }
    /* Before the jobs are copied: `memory_limit` does not count the copies. */
    if (zend_hash_num_elements(payloads) > samovar_jobs_max()) {
        zend_value_error("a push has 1 to %zu jobs, not %u", samovar_jobs_max(),
                         zend_hash_num_elements(payloads));
        return;
    }
    samovar_jobs_drop();
    if (!add_many(payloads, options, &job)) {
        samovar_jobs_drop();
        return;
    }
    if (zend_hash_num_elements(payloads) == 0 || !push_added(ZEND_THIS, afterResponse)) {
        return;
    }
    /* The ids of deferred jobs are not known before the jobs are stored. */
    const size_t count = samovar_jobs_count();
    for (size_t at = 0; at < count; at++) {
        zval id;
        return_id(&id, samovar_jobs_id(at));
        add_next_index_zval(return_value, &id);
    }
}

static ZEND_METHOD(Samovar_Queue, depth) {
    ZEND_PARSE_PARAMETERS_NONE();
    samovar_jobs_drop();
    if (push_added(ZEND_THIS, false)) {
        array_init(return_value);
        static const char *const names[] = {"ready", "delayed", "running"};
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            add_assoc_long(return_value, names[i], (zend_long)samovar_jobs_id(i));
        }
    }
}

void samovar_queue_startup(void) {
    ce = samovar_shared_class("Samovar\\Queue", samovar_methods, &object_handlers,
                              XtOffsetOf(queue_object, std));
    ce->create_object = create;
    object_handlers.free_obj = free_object;
}
