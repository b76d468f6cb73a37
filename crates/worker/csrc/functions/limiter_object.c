/* Samovar\RateLimiter: limits the rate of events, per key. */
#include "functions/shared.h"
#include "functions/arginfo/ratelimiter.h"

typedef struct {
    uint32_t limiter;
    zend_object std;
} limiter_object;

static zend_object_handlers object_handlers;

static limiter_object *object_of(const zval *object) {
    return (limiter_object *)((char *)Z_OBJ_P(object) - XtOffsetOf(limiter_object, std));
}

static zend_object *create(zend_class_entry *type) {
    limiter_object *o = zend_object_alloc(sizeof *o, type);
    zend_object_std_init(&o->std, type);
    o->std.handlers = &object_handlers;
    o->limiter = UINT32_MAX;
    return &o->std;
}

static ZEND_METHOD(Samovar_RateLimiter, __construct) {
    zend_string *name;
    double rate;
    zend_long burst, keys = 1024;
    ZEND_PARSE_PARAMETERS_START(3, 4)
    Z_PARAM_STR(name)
    Z_PARAM_DOUBLE(rate)
    Z_PARAM_LONG(burst)
    Z_PARAM_OPTIONAL
    Z_PARAM_LONG(keys)
    ZEND_PARSE_PARAMETERS_END();
    const int64_t opened = samovar_limiter_open(ZSTR_VAL(name), ZSTR_LEN(name), rate, burst, keys);
    if (opened < 0) {
        samovar_throw_problem();
        RETURN_THROWS();
    }
    object_of(ZEND_THIS)->limiter = (uint32_t)opened;
}

/* Returns the nanoseconds to wait, -1 if there is an exception. */
static int64_t ask(INTERNAL_FUNCTION_PARAMETERS, bool takes) {
    char *key = "";
    size_t len = 0;
    zend_long cost = 1;
    (void)return_value;
    ZEND_PARSE_PARAMETERS_START(0, 2)
    Z_PARAM_OPTIONAL
    Z_PARAM_STRING(key, len)
    Z_PARAM_LONG(cost)
    ZEND_PARSE_PARAMETERS_END_EX(return -1);
    const int64_t wait = samovar_limiter_ask(object_of(ZEND_THIS)->limiter, key, len, cost, takes);
    if (wait < 0) {
        samovar_throw_problem();
    }
    return wait;
}

static ZEND_METHOD(Samovar_RateLimiter, allow) {
    const int64_t wait = ask(INTERNAL_FUNCTION_PARAM_PASSTHRU, true);
    if (wait < 0) {
        RETURN_THROWS();
    }
    RETURN_BOOL(wait == 0);
}

static ZEND_METHOD(Samovar_RateLimiter, retryAfter) {
    const int64_t wait = ask(INTERNAL_FUNCTION_PARAM_PASSTHRU, false);
    if (wait < 0) {
        RETURN_THROWS();
    }
    RETURN_DOUBLE((double)wait / 1e9);
}

static ZEND_METHOD(Samovar_RateLimiter, remaining) {
    char *key = "";
    size_t len = 0;
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_STRING(key, len)
    ZEND_PARSE_PARAMETERS_END();
    const int64_t left = samovar_limiter_left(object_of(ZEND_THIS)->limiter, key, len);
    if (left < 0) {
        samovar_throw_problem();
        RETURN_THROWS();
    }
    RETURN_LONG(left);
}

void samovar_limiter_startup(void) {
    samovar_shared_class("Samovar\\RateLimiter", samovar_methods, &object_handlers,
                         XtOffsetOf(limiter_object, std))
        ->create_object = create;
}
