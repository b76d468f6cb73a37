/* Samovar\route(), Samovar\report_exception(), Samovar\timer() and its objects. */
#include "functions/timer_object.h"
#include "functions/pinba.h"
#include "insight/errors.h"
#include "insight/timers.h"
#include <zend_exceptions.h>
#include "functions/arginfo/prototypes.h"
#include "functions/arginfo/timer.h"

typedef struct {
    samovar_timer timer;
    zend_object std;
} timer_object;

static zend_class_entry *ce;
static zend_object_handlers object_handlers;

static timer_object *object_of(zend_object *object) {
    return (timer_object *)((char *)object - XtOffsetOf(timer_object, std));
}

/* ---- functions ----------------------------------------------------------------------------- */

ZEND_FUNCTION(Samovar_route) {
    zend_string *name;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_STR(name)
    ZEND_PARSE_PARAMETERS_END();
    samovar_request_accounting_route(ZSTR_VAL(name), ZSTR_LEN(name));
}

ZEND_FUNCTION(Samovar_report_exception) {
    zend_object *exception;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_OBJ_OF_CLASS(exception, zend_ce_throwable)
    ZEND_PARSE_PARAMETERS_END();
    samovar_errors_report(exception);
}

static bool has_nameless(const HashTable *tags) {
    zend_string *name;
    ZEND_HASH_FOREACH_STR_KEY(tags, name) {
        if (!name || ZSTR_LEN(name) == 0) {
            return true;
        }
    }
    ZEND_HASH_FOREACH_END();
    return false;
}

ZEND_FUNCTION(Samovar_timer) {
    HashTable *from;
    const char *problem;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_ARRAY_HT(from)
    ZEND_PARSE_PARAMETERS_END();
    if (zend_hash_num_elements(from) == 0) {
        zend_argument_value_error(1, "cannot be empty");
        RETURN_THROWS();
    }
    if (has_nameless(from)) {
        zend_argument_value_error(1, "must have a name for each tag");
        RETURN_THROWS();
    }
    HashTable *tags = samovar_timer_tags(from, &problem);
    if (!tags) {
        zend_argument_type_error(1, "must have values that are strings, numbers, booleans or null");
        RETURN_THROWS();
    }
    object_init_ex(return_value, ce);
    object_of(Z_OBJ_P(return_value))->timer.tags = tags;
}

/* ---- methods ------------------------------------------------------------------------------- */

static ZEND_METHOD(Samovar_Timer, __construct) {
    ZEND_PARSE_PARAMETERS_NONE();
}

static ZEND_METHOD(Samovar_Timer, start) {
    ZEND_PARSE_PARAMETERS_NONE();
    samovar_timer *t = &object_of(Z_OBJ_P(ZEND_THIS))->timer;
    if (!t->is_running) {
        samovar_timer_list(t);
        samovar_timer_start(t);
        t->hits++;
    }
    RETURN_OBJ_COPY(Z_OBJ_P(ZEND_THIS));
}

static ZEND_METHOD(Samovar_Timer, stop) {
    ZEND_PARSE_PARAMETERS_NONE();
    samovar_timer_stop(&object_of(Z_OBJ_P(ZEND_THIS))->timer);
    RETURN_OBJ_COPY(Z_OBJ_P(ZEND_THIS));
}

static ZEND_METHOD(Samovar_Timer, add) {
    double seconds;
    zend_long hits = 1;
    ZEND_PARSE_PARAMETERS_START(1, 2)
    Z_PARAM_DOUBLE(seconds)
    Z_PARAM_OPTIONAL
    Z_PARAM_LONG(hits)
    ZEND_PARSE_PARAMETERS_END();
    if (!(seconds >= 0) || seconds > TIMER_SECONDS_MAX) {
        zend_argument_value_error(1, "must be between 0 and %d", TIMER_SECONDS_MAX);
        RETURN_THROWS();
    }
    if (hits < 0 || hits > TIMER_HITS_MAX) {
        zend_argument_value_error(2, "must be between 0 and %d", TIMER_HITS_MAX);
        RETURN_THROWS();
    }
    samovar_timer *t = &object_of(Z_OBJ_P(ZEND_THIS))->timer;
    samovar_timer_list(t);
    t->sum.wall += (uint64_t)(seconds * 1e9);
    t->hits += (uint32_t)hits;
    RETURN_OBJ_COPY(Z_OBJ_P(ZEND_THIS));
}

/* ---- objects ------------------------------------------------------------------------------- */

static zend_object *create(zend_class_entry *type) {
    timer_object *o = zend_object_alloc(sizeof *o, type);
    memset(&o->timer, 0, sizeof o->timer);
    ZVAL_UNDEF(&o->timer.data);
    zend_object_std_init(&o->std, type);
    object_properties_init(&o->std, type);
    o->std.handlers = &object_handlers;
    return &o->std;
}

/* The time measured so far counts. */
static void free_object(zend_object *object) {
    timer_object *o = object_of(object);
    samovar_timer_stop(&o->timer);
    samovar_timer_tell(&o->timer);
    samovar_timer_unlist(&o->timer);
    if (o->timer.tags) {
        zend_array_release(o->timer.tags);
    }
    zend_object_std_dtor(object);
}

void samovar_timer_object_startup(void) {
    zend_class_entry type;
    INIT_NS_CLASS_ENTRY(type, "Samovar", "Timer", samovar_methods);
    ce = zend_register_internal_class(&type);
    ce->create_object = create;
    ce->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NO_DYNAMIC_PROPERTIES | ZEND_ACC_NOT_SERIALIZABLE;
    memcpy(&object_handlers, &std_object_handlers, sizeof object_handlers);
    object_handlers.offset = XtOffsetOf(timer_object, std);
    object_handlers.free_obj = free_object;
    object_handlers.clone_obj = NULL;
}

/* ---- a request ----------------------------------------------------------------------------- */

void samovar_measures_startup(void) {
    samovar_timers_forget();
    samovar_pinba = (pinba_request){0};
}

void samovar_measures_begin(void) {
    samovar_timer *t;
    while ((t = samovar_timers_first())) {
        samovar_timer_stop(t);
        t->hits = 0;
        t->sum = (timer_times){0};
        samovar_timer_unlist(t);
        samovar_pinba_drop(t);
    }
    samovar_pinba_begin();
}

void samovar_measures_end(void) {
    samovar_pinba_end();
    samovar_timer *t;
    while ((t = samovar_timers_first())) {
        samovar_timer_stop(t);
        samovar_timer_tell(t);
        samovar_timer_unlist(t);
        samovar_pinba_drop(t);
    }
}
