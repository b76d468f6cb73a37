/* Samovar\Lock: held by one request among all workers. Locks are released in Rust when the
 * request ends (src/shared.rs), for any reason. */
#include "functions/shared.h"
#include <zend_exceptions.h>
#include <ext/spl/spl_exceptions.h>
#include "functions/arginfo/lock.h"

typedef struct {
    uint32_t lock;
    bool is_open;
    uint64_t acquired_in; /* samovar_lock_turn() at that time; 0: not acquired */
    zend_object std;
} lock_object;

static zend_object_handlers object_handlers;

static lock_object *of_object(zend_object *std) {
    return (lock_object *)((char *)std - XtOffsetOf(lock_object, std));
}

static zend_object *create(zend_class_entry *type) {
    lock_object *o = zend_object_alloc(sizeof *o, type);
    zend_object_std_init(&o->std, type);
    o->std.handlers = &object_handlers;
    o->is_open = false;
    o->acquired_in = 0;
    return &o->std;
}

static bool let_go(lock_object *o) {
    const uint64_t turn = o->acquired_in;
    o->acquired_in = 0;
    return turn != 0 && turn == samovar_lock_turn() && samovar_lock_release(o->lock);
}

static void free_object(zend_object *std) {
    let_go(of_object(std));
    zend_object_std_dtor(std);
}

/* Returns true if this object now holds the lock. False: there is an exception, or the lock was
 * not available. */
static bool acquire(lock_object *o, double seconds) {
    const int acquired = o->is_open ? samovar_lock_acquire(o->lock, seconds) : 0;
    if (acquired == -2) {
        zend_throw_error(NULL, "This request already holds the lock: it would wait for itself");
    } else if (acquired == -1) {
        samovar_throw_problem();
    }
    if (acquired == 1) {
        o->acquired_in = samovar_lock_turn();
    }
    return acquired == 1;
}

static ZEND_METHOD(Samovar_Lock, __construct) {
    zend_string *name;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_STR(name)
    ZEND_PARSE_PARAMETERS_END();
    lock_object *o = of_object(Z_OBJ_P(ZEND_THIS));
    if (o->is_open) {
        zend_throw_error(NULL, "A Samovar\\Lock is constructed once");
        RETURN_THROWS();
    }
    const int64_t opened = samovar_lock_open(ZSTR_VAL(name), ZSTR_LEN(name));
    if (opened < 0) {
        samovar_throw_problem();
        RETURN_THROWS();
    }
    o->lock = (uint32_t)opened;
    o->is_open = true;
}

static ZEND_METHOD(Samovar_Lock, acquire) {
    double seconds = 0;
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_DOUBLE(seconds)
    ZEND_PARSE_PARAMETERS_END();
    RETURN_BOOL(acquire(of_object(Z_OBJ_P(ZEND_THIS)), seconds));
}

static ZEND_METHOD(Samovar_Lock, release) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_BOOL(let_go(of_object(Z_OBJ_P(ZEND_THIS))));
}

static ZEND_METHOD(Samovar_Lock, isHeld) {
    ZEND_PARSE_PARAMETERS_NONE();
    const lock_object *o = of_object(Z_OBJ_P(ZEND_THIS));
    RETURN_BOOL(o->is_open && samovar_lock_is_mine(o->lock));
}

static ZEND_METHOD(Samovar_Lock, synchronized) {
    zend_fcall_info info;
    zend_fcall_info_cache cache;
    double seconds = 1;
    ZEND_PARSE_PARAMETERS_START(1, 2)
    Z_PARAM_FUNC(info, cache)
    Z_PARAM_OPTIONAL
    Z_PARAM_DOUBLE(seconds)
    ZEND_PARSE_PARAMETERS_END();
    lock_object *o = of_object(Z_OBJ_P(ZEND_THIS));
    if (!acquire(o, seconds)) {
        if (!EG(exception)) {
            zend_throw_exception(spl_ce_RuntimeException,
                                 "Timed out: another request holds the lock", 0);
        }
        RETURN_THROWS();
    }
    info.retval = return_value;
    zend_call_function(&info, &cache);
    let_go(o);
}

void samovar_lock_startup(void) {
    zend_class_entry *ce = samovar_shared_class("Samovar\\Lock", samovar_methods, &object_handlers,
                                                XtOffsetOf(lock_object, std));
    ce->create_object = create;
    object_handlers.free_obj = free_object;
}
