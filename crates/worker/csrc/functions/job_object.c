/* Samovar\Job: a job of the batch that runs, and its result. */
#include "functions/jobs.h"
#include "functions/shared.h"
#include <zend_exceptions.h>
#include <zend_interfaces.h>
#include <zend_smart_str.h>
#include <ext/json/php_json.h>
#include "functions/arginfo/job.h"

enum { BATCH_DEPTH_MAX = 512 };
/* Encloses the results in the response, which may also have output of the boot and of shutdown
 * functions. JSON never contains it. RESULTS_MARK of crates/jobs/src/batch.rs. */
enum { RESULTS_MARK = 0x1e };

typedef enum { JOB_OPEN, JOB_DONE, JOB_RETRY, JOB_FAILED, JOB_RELEASED } job_result;

typedef struct {
    zend_long id, attempt;
    zend_string *queue;
    zend_string *key;         /* NULL: none */
    zend_string *traceparent; /* NULL: none */
    zend_string *tracestate;  /* NULL: none */
    zend_string *reason;      /* NULL: none */
    double delay;             /* negative: that of the queue */
    job_result result;
    zval payload;
    zend_object std;
} job_object;

static zend_class_entry *ce;
static zend_object_handlers object_handlers;

static job_object *object_of(zend_object *std) {
    return (job_object *)((char *)std - XtOffsetOf(job_object, std));
}

static zend_object *create(zend_class_entry *type) {
    job_object *o = zend_object_alloc(sizeof *o, type);
    memset(o, 0, XtOffsetOf(job_object, std));
    zend_object_std_init(&o->std, type);
    o->std.handlers = &object_handlers;
    o->queue = ZSTR_EMPTY_ALLOC();
    o->delay = -1;
    ZVAL_NULL(&o->payload);
    return &o->std;
}

static void free_object(zend_object *std) {
    job_object *o = object_of(std);
    zend_string_release(o->queue);
    zend_string *texts[] = {o->key, o->traceparent, o->tracestate, o->reason};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (texts[i]) {
            zend_string_release(texts[i]);
        }
    }
    zval_ptr_dtor(&o->payload);
    zend_object_std_dtor(std);
}

static HashTable *get_gc(zend_object *std, zval **table, int *n) {
    *table = &object_of(std)->payload;
    *n = 1;
    return zend_std_get_properties(std);
}

/* ---- methods ------------------------------------------------------------------------------- */

static ZEND_METHOD(Samovar_Job, __construct) {
    ZEND_PARSE_PARAMETERS_NONE();
}

static ZEND_METHOD(Samovar_Job, id) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_LONG(object_of(Z_OBJ_P(ZEND_THIS))->id);
}

static ZEND_METHOD(Samovar_Job, queue) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_STR_COPY(object_of(Z_OBJ_P(ZEND_THIS))->queue);
}

static ZEND_METHOD(Samovar_Job, attempt) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_LONG(object_of(Z_OBJ_P(ZEND_THIS))->attempt);
}

static void return_text(zval *return_value, zend_string *text) {
    if (text) {
        RETURN_STR_COPY(text);
    }
    RETURN_NULL();
}

static ZEND_METHOD(Samovar_Job, key) {
    ZEND_PARSE_PARAMETERS_NONE();
    return_text(return_value, object_of(Z_OBJ_P(ZEND_THIS))->key);
}

static ZEND_METHOD(Samovar_Job, traceparent) {
    ZEND_PARSE_PARAMETERS_NONE();
    return_text(return_value, object_of(Z_OBJ_P(ZEND_THIS))->traceparent);
}

static ZEND_METHOD(Samovar_Job, tracestate) {
    ZEND_PARSE_PARAMETERS_NONE();
    return_text(return_value, object_of(Z_OBJ_P(ZEND_THIS))->tracestate);
}

static ZEND_METHOD(Samovar_Job, payload) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_COPY(&object_of(Z_OBJ_P(ZEND_THIS))->payload);
}

static void set(zval *object, job_result result, double delay, zend_string *reason) {
    job_object *o = object_of(Z_OBJ_P(object));
    if (o->reason) {
        zend_string_release(o->reason);
    }
    o->reason = reason && ZSTR_LEN(reason) > 0 ? zend_string_copy(reason) : NULL;
    o->result = result;
    o->delay = delay;
}

static ZEND_METHOD(Samovar_Job, done) {
    ZEND_PARSE_PARAMETERS_NONE();
    set(ZEND_THIS, JOB_DONE, -1, NULL);
}

static ZEND_METHOD(Samovar_Job, fail) {
    zend_string *reason = NULL;
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_STR(reason)
    ZEND_PARSE_PARAMETERS_END();
    set(ZEND_THIS, JOB_FAILED, -1, reason);
}

static ZEND_METHOD(Samovar_Job, retry) {
    double delay = -1;
    bool is_default = true;
    zend_string *reason = NULL;
    ZEND_PARSE_PARAMETERS_START(0, 2)
    Z_PARAM_OPTIONAL
    Z_PARAM_DOUBLE_OR_NULL(delay, is_default)
    Z_PARAM_STR(reason)
    ZEND_PARSE_PARAMETERS_END();
    if (!is_default && !(delay >= 0 && delay <= 1e9)) {
        zend_argument_value_error(1, "must be between 0 and 1,000,000,000 seconds");
        RETURN_THROWS();
    }
    set(ZEND_THIS, JOB_RETRY, is_default ? -1 : delay, reason);
}

static ZEND_METHOD(Samovar_Job, release) {
    double delay = 0;
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_DOUBLE(delay)
    ZEND_PARSE_PARAMETERS_END();
    if (!(delay >= 0 && delay <= 1e9)) {
        zend_argument_value_error(1, "must be between 0 and 1,000,000,000 seconds");
        RETURN_THROWS();
    }
    set(ZEND_THIS, JOB_RELEASED, delay, NULL);
}

/* ---- a batch ------------------------------------------------------------------------------- */

static const zval *entry(const HashTable *of, const char *name, zend_uchar type) {
    const zval *found = zend_hash_str_find(of, name, strlen(name));
    return found && Z_TYPE_P(found) == type ? found : NULL;
}

static zend_string *text_of(const HashTable *of, const char *name) {
    const zval *found = entry(of, name, IS_STRING);
    return found ? zend_string_copy(Z_STR_P(found)) : NULL;
}

static bool add_job(zval *jobs, const zval *from, zend_string *queue) {
    const zval *id, *attempt;
    if (Z_TYPE_P(from) != IS_ARRAY || !(id = entry(Z_ARRVAL_P(from), "id", IS_LONG)) ||
        !(attempt = entry(Z_ARRVAL_P(from), "attempt", IS_LONG))) {
        return false;
    }
    zval job;
    object_init_ex(&job, ce);
    job_object *o = object_of(Z_OBJ(job));
    o->id = Z_LVAL_P(id);
    o->attempt = Z_LVAL_P(attempt);
    o->queue = zend_string_copy(queue);
    o->key = text_of(Z_ARRVAL_P(from), "key");
    o->traceparent = text_of(Z_ARRVAL_P(from), "traceparent");
    o->tracestate = text_of(Z_ARRVAL_P(from), "tracestate");
    zval *payload = zend_hash_str_find(Z_ARRVAL_P(from), ZEND_STRL("payload"));
    if (payload) {
        ZVAL_COPY(&o->payload, payload);
    }
    add_next_index_zval(jobs, &job);
    return true;
}

bool samovar_jobs_of(zend_string *batch, zval *jobs) {
    zval document;
    array_init(jobs);
    if (php_json_decode_ex(&document, ZSTR_VAL(batch), ZSTR_LEN(batch), PHP_JSON_OBJECT_AS_ARRAY,
                           BATCH_DEPTH_MAX) == FAILURE) {
        return false;
    }
    const zval *queue = NULL, *list = NULL;
    if (Z_TYPE(document) == IS_ARRAY) {
        queue = entry(Z_ARRVAL(document), "queue", IS_STRING);
        list = entry(Z_ARRVAL(document), "jobs", IS_ARRAY);
    }
    bool is_valid = queue && list;
    if (is_valid) {
        const zval *job;
        ZEND_HASH_FOREACH_VAL(Z_ARRVAL_P(list), job) {
            is_valid = is_valid && add_job(jobs, job, Z_STR_P(queue));
        }
        ZEND_HASH_FOREACH_END();
    }
    zval_ptr_dtor(&document);
    return is_valid;
}

static const char *name_of(const job_object *o, bool has_thrown) {
    switch (o->result) {
    case JOB_DONE:
        return "done";
    case JOB_FAILED:
        return "fail";
    case JOB_RELEASED:
        return "release";
    case JOB_RETRY:
        return "retry";
    default:
        return has_thrown ? "retry" : "done";
    }
}

/* Adds the position of the exception, and its text: class, message, position and stack. */
static void add_error(zval *to, zend_object *thrown) {
    add_assoc_str(to, "class", zend_string_copy(thrown->ce->name));
    zend_class_entry *base = zend_get_exception_base(thrown);
    if (base) {
        zval file_room, line_room;
        zval *file =
            zend_read_property_ex(base, thrown, ZSTR_KNOWN(ZEND_STR_FILE), true, &file_room);
        zval *line =
            zend_read_property_ex(base, thrown, ZSTR_KNOWN(ZEND_STR_LINE), true, &line_room);
        if (Z_TYPE_P(file) == IS_STRING && Z_TYPE_P(line) == IS_LONG) {
            add_assoc_str(
                to, "place",
                zend_strpprintf(0, "%s:" ZEND_LONG_FMT, Z_STRVAL_P(file), Z_LVAL_P(line)));
        }
    }
    zval text;
    ZVAL_UNDEF(&text);
    zend_call_known_instance_method_with_0_params(thrown->ce->__tostring, thrown, &text);
    if (EG(exception)) {
        zend_clear_exception();
    }
    if (Z_TYPE(text) == IS_STRING) {
        add_assoc_zval(to, "error", &text);
    } else {
        zval_ptr_dtor(&text);
        add_assoc_str(to, "error", zend_string_copy(thrown->ce->name));
    }
}

zend_string *samovar_jobs_results(HashTable *jobs, zend_object *thrown) {
    zval document, results, *job;
    array_init(&document);
    array_init_size(&results, zend_hash_num_elements(jobs));
    ZEND_HASH_FOREACH_VAL(jobs, job) {
        const job_object *o = object_of(Z_OBJ_P(job));
        zval result;
        array_init(&result);
        add_assoc_string(&result, "outcome", name_of(o, thrown != NULL));
        if (o->delay >= 0) {
            add_assoc_long(&result, "delay_ms", (zend_long)(o->delay * 1000.0 + 0.5));
        }
        if (o->reason) {
            add_assoc_str(&result, "error", zend_string_copy(o->reason));
        }
        add_next_index_zval(&results, &result);
    }
    ZEND_HASH_FOREACH_END();
    add_assoc_zval(&document, "results", &results);
    if (thrown) {
        add_error(&document, thrown);
    }
    smart_str text = {0};
    smart_str_appendc(&text, RESULTS_MARK);
    php_json_encode(&text, &document,
                    PHP_JSON_INVALID_UTF8_SUBSTITUTE | PHP_JSON_PARTIAL_OUTPUT_ON_ERROR);
    smart_str_appendc(&text, RESULTS_MARK);
    smart_str_0(&text);
    zval_ptr_dtor(&document);
    return text.s;
}

void samovar_job_startup(void) {
    ce = samovar_shared_class("Samovar\\Job", samovar_methods, &object_handlers,
                              XtOffsetOf(job_object, std));
    ce->create_object = create;
    object_handlers.free_obj = free_object;
    object_handlers.get_gc = get_gc;
}
