/* Samovar\Pool: a set of objects, each of which is used by one task at a time. */
#include "functions/tasks.h"
#include "functions/pooled.h"
#include "insight/request_accounting.h"
#include <zend_exceptions.h>
#include "functions/arginfo/pool.h"

enum { SIZE_MAX_OF_POOL = 1024 };

typedef struct {
    zval object;
    bool is_used; /* in use, or being made */
    zend_long uses;
    uint64_t idle_since_ns;
} pooled;

typedef struct {
    zend_fcall_info make, check;
    zend_fcall_info_cache make_cache, check_cache;
    zend_long size, uses_max, made;
    double idle, wait;
    uint32_t count;
    pooled *items; /* room for `size`; the first `count` exist */
    zend_object std;
} pool;

static zend_object_handlers object_handlers;

static pool *of_object(zend_object *object) {
    return (pool *)((char *)object - XtOffsetOf(pool, std));
}

static zend_object *create(zend_class_entry *type) {
    pool *p = zend_object_alloc(sizeof *p, type);
    memset(p, 0, XtOffsetOf(pool, std));
    zend_object_std_init(&p->std, type);
    object_properties_init(&p->std, type);
    p->std.handlers = &object_handlers;
    return &p->std;
}

static void free_object(zend_object *object) {
    pool *p = of_object(object);
    for (uint32_t i = 0; i < p->count; i++) {
        zval_ptr_dtor(&p->items[i].object);
    }
    if (p->items) {
        efree(p->items);
        zval_ptr_dtor(&p->make.function_name);
        zval_ptr_dtor(&p->check.function_name);
    }
    zend_object_std_dtor(object);
}

/* Reports the objects and callbacks, because they may refer to the pool. */
static HashTable *get_gc(zend_object *object, zval **table, int *count) {
    pool *p = of_object(object);
    zend_get_gc_buffer *held = zend_get_gc_buffer_create();
    for (uint32_t i = 0; i < p->count; i++) {
        zend_get_gc_buffer_add_zval(held, &p->items[i].object);
    }
    if (p->items) {
        zend_get_gc_buffer_add_zval(held, &p->make.function_name);
        zend_get_gc_buffer_add_zval(held, &p->check.function_name);
    }
    zend_get_gc_buffer_use(held, table, count);
    return zend_std_get_properties(object);
}

/* ---- one of them --------------------------------------------------------------------------- */

/* Returns the index of an object. Dropping an object moves the last one to its index, so no
 * index is kept while other code runs. */
static uint32_t index_of(const pool *p, const zval *object) {
    uint32_t i = 0;
    while (i < p->count && !zend_is_identical(&p->items[i].object, object)) {
        i++;
    }
    return i;
}

static void drop(pool *p, uint32_t index) {
    zval object;
    ZVAL_COPY_VALUE(&object, &p->items[index].object);
    p->items[index] = p->items[--p->count];
    zval_ptr_dtor(&object);
    samovar_task_tell(p);
}

static bool is_good(const pool *p, zval *object, uint64_t idle_ns) {
    if (!ZEND_FCI_INITIALIZED(p->check)) {
        return samovar_pooled_responses(object, idle_ns);
    }
    zend_fcall_info check = p->check;
    zend_fcall_info_cache cache = p->check_cache;
    zval said;
    ZVAL_UNDEF(&said);
    check.retval = &said;
    check.params = object;
    check.param_count = 1;
    zend_call_function(&check, &cache);
    return samovar_pooled_was_good(&said);
}

/* Takes the object that was used last, if it still works. */
static bool take_idle(pool *p, zval *to) {
    for (;;) {
        uint32_t best = p->count;
        for (uint32_t i = 0; i < p->count; i++) {
            if (!p->items[i].is_used &&
                (best == p->count || p->items[i].idle_since_ns > p->items[best].idle_since_ns)) {
                best = i;
            }
        }
        if (best == p->count) {
            return false;
        }
        p->items[best].is_used = true;
        ZVAL_COPY(to, &p->items[best].object);
        const uint64_t idle_ns = samovar_now_ns() - p->items[best].idle_since_ns;
        if ((double)idle_ns <= p->idle * 1e9 && is_good(p, to, idle_ns)) {
            return true;
        }
        drop(p, index_of(p, to));
        zval_ptr_dtor(to);
        ZVAL_UNDEF(to);
        if (EG(exception)) {
            return false; /* The task was cancelled meanwhile. */
        }
    }
}

/* Makes an object. The call may wait; meanwhile other tasks see that the place is taken. */
static bool make(pool *p, zval *to) {
    zend_fcall_info call = p->make;
    zend_fcall_info_cache cache = p->make_cache;
    const uint32_t place = p->count++;
    ZVAL_UNDEF(to);
    /* Until the object exists, a number that is not identical to any object marks its place. */
    zval mark;
    ZVAL_DOUBLE(&mark, (double)++p->made);
    p->items[place] = (pooled){.is_used = true};
    ZVAL_COPY_VALUE(&p->items[place].object, &mark);
    call.retval = to;
    zend_call_function(&call, &cache);
    const uint32_t index = index_of(p, &mark);
    if (EG(exception) || Z_ISUNDEF_P(to)) {
        zval_ptr_dtor(to);
        ZVAL_UNDEF(to);
        drop(p, index);
        return false;
    }
    if (Z_TYPE_P(to) != IS_OBJECT && Z_TYPE_P(to) != IS_RESOURCE) {
        zend_type_error("The factory of a pool must return objects or resources, %s returned",
                        zend_zval_type_name(to));
        zval_ptr_dtor(to);
        drop(p, index);
        return false;
    }
    ZVAL_COPY(&p->items[index].object, to);
    return true;
}

static bool take(pool *p, zval *to) {
    const uint64_t deadline = samovar_deadline(true, p->wait);
    for (;;) {
        if (take_idle(p, to)) {
            return true;
        }
        if (EG(exception)) {
            return false;
        }
        if (p->count < (uint32_t)p->size) {
            return make(p, to);
        }
        if (!samovar_wait_for_word(p, deadline,
                                   "Timed out: no object of the pool became free; hint: use a "
                                   "larger `size`, a longer `wait`, or do less work while "
                                   "holding one")) {
            return false;
        }
    }
}

static void give_back(pool *p, const zval *object, bool is_sound) {
    const uint32_t index = index_of(p, object);
    if (index == p->count) {
        return;
    }
    pooled *item = &p->items[index];
    if (!is_sound || (p->uses_max > 0 && item->uses + 1 >= p->uses_max)) {
        drop(p, index);
        return;
    }
    item->uses++;
    item->is_used = false;
    item->idle_since_ns = samovar_now_ns();
    samovar_task_tell(p);
}

/* ---- methods ------------------------------------------------------------------------------- */

static bool are_valid(zend_long size, zend_long uses_max, double idle, double wait) {
    if (size < 1 || size > SIZE_MAX_OF_POOL) {
        zend_argument_value_error(2, "must be between 1 and %d", SIZE_MAX_OF_POOL);
        return false;
    }
    if (uses_max < 0) {
        zend_argument_value_error(3, "must be greater than or equal to 0");
        return false;
    }
    return samovar_seconds_are_valid(4, idle) && samovar_seconds_are_valid(6, wait);
}

static ZEND_METHOD(Samovar_Pool, __construct) {
    pool *p = of_object(Z_OBJ_P(ZEND_THIS));
    zend_fcall_info calls[2] = {{0}, {0}};
    zend_fcall_info_cache caches[2];
    zend_long size = 8, uses_max = 0;
    double idle = 60, wait = 5;
    ZEND_PARSE_PARAMETERS_START(1, 6)
    Z_PARAM_FUNC(calls[0], caches[0])
    Z_PARAM_OPTIONAL
    Z_PARAM_LONG(size)
    Z_PARAM_LONG(uses_max)
    Z_PARAM_DOUBLE(idle)
    Z_PARAM_FUNC_OR_NULL(calls[1], caches[1])
    Z_PARAM_DOUBLE(wait)
    ZEND_PARSE_PARAMETERS_END();
    if (!are_valid(size, uses_max, idle, wait)) {
        RETURN_THROWS();
    }
    if (p->items) {
        zend_throw_error(NULL, "The pool is already constructed");
        RETURN_THROWS();
    }
    p->make = calls[0];
    p->make_cache = caches[0];
    p->check = calls[1];
    p->check_cache = caches[1];
    Z_TRY_ADDREF(p->make.function_name);
    if (ZEND_FCI_INITIALIZED(p->check)) {
        Z_TRY_ADDREF(p->check.function_name);
    } else {
        ZVAL_UNDEF(&p->check.function_name);
    }
    p->size = size;
    p->uses_max = uses_max;
    p->idle = idle;
    p->wait = wait;
    p->items = safe_emalloc((size_t)size, sizeof *p->items, 0);
}

static ZEND_METHOD(Samovar_Pool, use) {
    zend_fcall_info work;
    zend_fcall_info_cache cache;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_FUNC(work, cache)
    ZEND_PARSE_PARAMETERS_END();
    pool *p = of_object(Z_OBJ_P(ZEND_THIS));
    zval object;
    if (!take(p, &object)) {
        RETURN_THROWS();
    }
    work.retval = return_value;
    work.params = &object;
    work.param_count = 1;
    zend_call_function(&work, &cache);
    give_back(p, &object, !EG(exception));
    zval_ptr_dtor(&object);
}

static ZEND_METHOD(Samovar_Pool, take) {
    ZEND_PARSE_PARAMETERS_NONE();
    if (!take(of_object(Z_OBJ_P(ZEND_THIS)), return_value)) {
        RETURN_THROWS();
    }
}

static ZEND_METHOD(Samovar_Pool, giveBack) {
    zval *object;
    bool is_sound = true;
    ZEND_PARSE_PARAMETERS_START(1, 2)
    Z_PARAM_ZVAL(object)
    Z_PARAM_OPTIONAL
    Z_PARAM_BOOL(is_sound)
    ZEND_PARSE_PARAMETERS_END();
    pool *p = of_object(Z_OBJ_P(ZEND_THIS));
    const uint32_t index = index_of(p, object);
    const int type = Z_TYPE_P(object);
    if ((type != IS_OBJECT && type != IS_RESOURCE) || index == p->count ||
        !p->items[index].is_used) {
        zend_argument_value_error(1, "must be an object that take() returned, and can be given "
                                     "back only once");
        RETURN_THROWS();
    }
    give_back(p, object, is_sound);
}

static ZEND_METHOD(Samovar_Pool, stats) {
    ZEND_PARSE_PARAMETERS_NONE();
    const pool *p = of_object(Z_OBJ_P(ZEND_THIS));
    zend_long used = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        used += p->items[i].is_used;
    }
    array_init(return_value);
    add_assoc_long(return_value, "size", p->size);
    add_assoc_long(return_value, "idle", (zend_long)p->count - used);
    add_assoc_long(return_value, "used", used);
    add_assoc_long(return_value, "made", p->made);
}

void samovar_pool_startup(void) {
    zend_class_entry type;
    INIT_NS_CLASS_ENTRY(type, "Samovar", "Pool", samovar_methods);
    zend_class_entry *ce = zend_register_internal_class(&type);
    ce->create_object = create;
    ce->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NO_DYNAMIC_PROPERTIES | ZEND_ACC_NOT_SERIALIZABLE;
    memcpy(&object_handlers, &std_object_handlers, sizeof object_handlers);
    object_handlers.offset = XtOffsetOf(pool, std);
    object_handlers.free_obj = free_object;
    object_handlers.get_gc = get_gc;
    object_handlers.clone_obj = NULL;
}
