/* Samovar\Counter: a number that all workers share. */
#include "functions/shared.h"
#include "functions/arginfo/counter.h"

typedef struct {
    uint32_t counter;
    zend_object std;
} counter_object;

static zend_object_handlers object_handlers;

static uint32_t counter_of(const zval *object) {
    const char *std = (const char *)Z_OBJ_P(object);
    return ((const counter_object *)(std - XtOffsetOf(counter_object, std)))->counter;
}

static zend_object *create(zend_class_entry *type) {
    counter_object *o = zend_object_alloc(sizeof *o, type);
    zend_object_std_init(&o->std, type);
    o->std.handlers = &object_handlers;
    return &o->std;
}

static ZEND_METHOD(Samovar_Counter, __construct) {
    zend_string *name;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_STR(name)
    ZEND_PARSE_PARAMETERS_END();
    const int64_t opened = samovar_counter_open(ZSTR_VAL(name), ZSTR_LEN(name));
    if (opened < 0) {
        samovar_throw_problem();
        RETURN_THROWS();
    }
    char *std = (char *)Z_OBJ_P(ZEND_THIS);
    ((counter_object *)(std - XtOffsetOf(counter_object, std)))->counter = (uint32_t)opened;
}

static ZEND_METHOD(Samovar_Counter, get) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_LONG(samovar_counter_get(counter_of(ZEND_THIS)));
}

static ZEND_METHOD(Samovar_Counter, set) {
    zend_long value;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_LONG(value)
    ZEND_PARSE_PARAMETERS_END();
    RETURN_LONG(samovar_counter_set(counter_of(ZEND_THIS), value));
}

static ZEND_METHOD(Samovar_Counter, incr) {
    zend_long by = 1;
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_LONG(by)
    ZEND_PARSE_PARAMETERS_END();
    RETURN_LONG(samovar_counter_add(counter_of(ZEND_THIS), by));
}

static ZEND_METHOD(Samovar_Counter, decr) {
    zend_long by = 1;
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_LONG(by)
    ZEND_PARSE_PARAMETERS_END();
    /* Unsigned, because the smallest integer has no opposite. */
    RETURN_LONG(samovar_counter_add(counter_of(ZEND_THIS), (zend_long)(0 - (zend_ulong)by)));
}

static ZEND_METHOD(Samovar_Counter, compareAndSet) {
    zend_long expected, value;
    ZEND_PARSE_PARAMETERS_START(2, 2)
    Z_PARAM_LONG(expected)
    Z_PARAM_LONG(value)
    ZEND_PARSE_PARAMETERS_END();
    RETURN_BOOL(samovar_counter_compare_and_set(counter_of(ZEND_THIS), expected, value));
}

void samovar_counter_startup(void) {
    samovar_shared_class("Samovar\\Counter", samovar_methods, &object_handlers,
                         XtOffsetOf(counter_object, std))
        ->create_object = create;
}
