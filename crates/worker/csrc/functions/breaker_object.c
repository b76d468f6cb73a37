/* Samovar\Breaker: decides whether a dependency is called at all. A call from which PHP does not
 * return is reported in Rust at the end of the request (src/shared.rs). */
#include "functions/shared.h"
#include <zend_exceptions.h>
#include <ext/spl/spl_exceptions.h>
#include "functions/arginfo/breaker.h"

typedef struct {
    uint32_t breaker;
    zend_object std;
} breaker_object;

static zend_object_handlers object_handlers;
/* Class Samovar\BreakerOpenException. */
static zend_class_entry *refusal;

static breaker_object *object_of(const zval *object) {
    return (breaker_object *)((char *)Z_OBJ_P(object) - XtOffsetOf(breaker_object, std));
}

static zend_object *create(zend_class_entry *type) {
    breaker_object *o = zend_object_alloc(sizeof *o, type);
    zend_object_std_init(&o->std, type);
    o->std.handlers = &object_handlers;
    o->breaker = UINT32_MAX;
    return &o->std;
}

static ZEND_METHOD(Samovar_Breaker, __construct) {
    zend_string *name;
    samovar_breaker_rules rules = {0.5, 1.0, 0.0, 10, 10.0, 5.0};
    zend_long calls_min = rules.calls_min;
    ZEND_PARSE_PARAMETERS_START(1, 7)
    Z_PARAM_STR(name)
    Z_PARAM_OPTIONAL
    Z_PARAM_DOUBLE(rules.failures)
    Z_PARAM_DOUBLE(rules.slow)
    Z_PARAM_DOUBLE(rules.slow_after)
    Z_PARAM_LONG(calls_min)
    Z_PARAM_DOUBLE(rules.window)
    Z_PARAM_DOUBLE(rules.pause)
    ZEND_PARSE_PARAMETERS_END();
    rules.calls_min = calls_min;
    const int64_t opened = samovar_breaker_open(ZSTR_VAL(name), ZSTR_LEN(name), &rules);
    if (opened < 0) {
        samovar_throw_problem();
        RETURN_THROWS();
    }
    object_of(ZEND_THIS)->breaker = (uint32_t)opened;
}

static void throw_refusal(double seconds) {
    zval thrown;
    object_init_ex(&thrown, refusal);
    zend_string *message =
        strpprintf(0, "The breaker is open, and allows the next call in %.1f seconds", seconds);
    zend_update_property_str(zend_ce_exception, Z_OBJ(thrown), ZEND_STRL("message"), message);
    zend_string_release(message);
    zend_update_property_double(refusal, Z_OBJ(thrown), ZEND_STRL("retryAfter"), seconds);
    zend_throw_exception_object(&thrown);
}

/* Returns true if the exception is of one of these classes. */
static bool is_response(HashTable *responses) {
    const zval *name;
    ZEND_HASH_FOREACH_VAL(responses, name) {
        ZVAL_DEREF(name);
        /* A class that is not loaded cannot be the class of an exception. */
        const zend_class_entry *type =
            Z_TYPE_P(name) == IS_STRING
                ? zend_lookup_class_ex(Z_STR_P(name), NULL, ZEND_FETCH_CLASS_NO_AUTOLOAD)
                : NULL;
        if (type && instanceof_function(EG(exception)->ce, type)) {
            return true;
        }
    }
    ZEND_HASH_FOREACH_END();
    return false;
}

static int outcome(HashTable *responses) {
    if (!EG(exception)) {
        return SAMOVAR_BREAKER_WELL;
    }
    if (zend_is_unwind_exit(EG(exception))) {
        /* exit(), or too little memory, which the engine reports in the same way. */
        return CG(unclean_shutdown) ? SAMOVAR_BREAKER_FAILED : SAMOVAR_BREAKER_UNKNOWN;
    }
    return responses && is_response(responses) ? SAMOVAR_BREAKER_WELL : SAMOVAR_BREAKER_FAILED;
}

static ZEND_METHOD(Samovar_Breaker, call) {
    zend_fcall_info call, otherwise = empty_fcall_info;
    zend_fcall_info_cache call_cache, otherwise_cache;
    HashTable *responses = NULL;
    ZEND_PARSE_PARAMETERS_START(1, 3)
    Z_PARAM_FUNC(call, call_cache)
    Z_PARAM_OPTIONAL
    Z_PARAM_FUNC_OR_NULL(otherwise, otherwise_cache)
    Z_PARAM_ARRAY_HT(responses)
    ZEND_PARSE_PARAMETERS_END();
    double seconds = 0;
    const int64_t number = samovar_breaker_ask(object_of(ZEND_THIS)->breaker, &seconds);
    if (number < 0) {
        samovar_throw_problem();
        RETURN_THROWS();
    }
    if (number > 0) {
        call.retval = return_value;
        zend_call_function(&call, &call_cache);
        samovar_breaker_report(number, outcome(responses));
    } else if (ZEND_FCI_INITIALIZED(otherwise)) {
        otherwise.retval = return_value;
        zend_call_function(&otherwise, &otherwise_cache);
    } else {
        throw_refusal(seconds);
        RETURN_THROWS();
    }
}

static ZEND_METHOD(Samovar_Breaker, state) {
    ZEND_PARSE_PARAMETERS_NONE();
    const char *state = samovar_breaker_state(object_of(ZEND_THIS)->breaker);
    if (!state) {
        samovar_throw_problem();
        RETURN_THROWS();
    }
    RETURN_STRING(state);
}

static ZEND_METHOD(Samovar_Breaker, reset) {
    ZEND_PARSE_PARAMETERS_NONE();
    if (samovar_breaker_reset(object_of(ZEND_THIS)->breaker) < 0) {
        samovar_throw_problem();
        RETURN_THROWS();
    }
}

void samovar_breaker_startup(void) {
    samovar_shared_class("Samovar\\Breaker", samovar_methods, &object_handlers,
                         XtOffsetOf(breaker_object, std))
        ->create_object = create;
    zend_class_entry type;
    INIT_CLASS_ENTRY(type, "Samovar\\BreakerOpenException", NULL);
    refusal = zend_register_internal_class_ex(&type, spl_ce_RuntimeException);
    refusal->ce_flags |= ZEND_ACC_FINAL;
    zval zero;
    ZVAL_DOUBLE(&zero, 0.0);
    zend_string *name = zend_string_init("retryAfter", sizeof "retryAfter" - 1, true);
    zend_declare_typed_property(refusal, name, &zero, ZEND_ACC_PUBLIC, NULL,
                                (zend_type)ZEND_TYPE_INIT_MASK(MAY_BE_DOUBLE));
    zend_string_release(name);
}
