/* Differences between the PHP versions that the worker is built for, 8.2 to 8.5 (build.rs refuses
 * others). No other file checks the version (tests/tidy/rooms.rs). Options of a PHP build (signals,
 * timers, sessions) are checked where they matter. */
#ifndef SAMOVAR_COMPAT_H
#define SAMOVAR_COMPAT_H

#include <php.h>
#include <zend_fibers.h>
#include <ext/random/php_random.h>
#include <ext/session/php_session.h>
#include <ext/standard/basic_functions.h>

/* This symbol does not exist in a PHP without sessions. */
#pragma weak ps_globals

/* ---- flush() ------------------------------------------------------------------------------- */

/* Since 8.4, flush() sends the headers of a response that has no body yet. */
enum { SAMOVAR_FLUSH_SENDS_HEADERS = PHP_VERSION_ID >= 80400 };

/* ---- session handlers ---------------------------------------------------------------------- */

/* The functions of session_set_save_handler() are stored one after another: in an array until
 * 8.2, in named fields since 8.4. */
enum { SESSION_HANDLERS = sizeof(((php_ps_globals *)0)->mod_user_names) / sizeof(zval) };
#define SAMOVAR_SESSION_HANDLER(i) (&((zval *)&PS(mod_user_names))[i])

/* ---- random generators --------------------------------------------------------------------- */

/* Sets the state of the combined LCG: two numbers above 0. */
static inline void samovar_lcg_set(int32_t first, int32_t second) {
#if PHP_VERSION_ID >= 80400
    int32_t *state = RANDOM_G(combined_lcg);
#else
    int32_t *state = ((php_random_status_state_combinedlcg *)RANDOM_G(combined_lcg)->state)->state;
#endif
    state[0] = first;
    state[1] = second;
    RANDOM_G(combined_lcg_seeded) = true;
}

/* Seeds the engine of a Random\Engine object with `seed`. */
static inline void samovar_engine_seed(php_random_engine *engine, uint64_t seed) {
#if PHP_VERSION_ID >= 80400
    void *state = engine->engine.state;
    if (engine->engine.algo == &php_random_algo_mt19937) {
        php_random_mt19937_seed32(state, (uint32_t)seed);
    } else if (engine->engine.algo == &php_random_algo_pcgoneseq128xslrr64) {
        php_random_pcgoneseq128xslrr64_seed128(state, php_random_uint128_constant(0, seed));
    } else if (engine->engine.algo == &php_random_algo_xoshiro256starstar) {
        php_random_xoshiro256starstar_seed64(state, seed);
    }
#else
    engine->algo->seed(engine->status, seed);
#endif
}

/* Since 8.4 the session has a generator of its own, which decides which request collects garbage.
 * Before that it was the LCG. */
enum { SAMOVAR_SESSION_OWN_RANDOM = PHP_VERSION_ID >= 80400 };

/* Seeds that generator. PHP seeds it when the process starts; some releases (`random_seeded`) do it
 * at the first use. */
static inline void samovar_session_random_seed(uint64_t high, uint64_t low) {
#if PHP_VERSION_ID >= 80400
    php_random_pcgoneseq128xslrr64_seed128(&PS(random_state),
                                           php_random_uint128_constant(high, low));
#else
    (void)high;
    (void)low;
#endif
}

/* ---- shutdown functions -------------------------------------------------------------------- */

/* The callable of register_shutdown_function(), borrowed. Since 8.5 only its parts are stored: the
 * closure or object, or else the function. */
static inline zval samovar_shutdown_callable(const php_shutdown_function_entry *entry) {
    zval callable;
#if PHP_VERSION_ID >= 80500
    const zend_fcall_info_cache *parts = &entry->fci_cache;
    zend_object *object = parts->closure ? parts->closure : parts->object;
    if (object) {
        ZVAL_OBJ(&callable, object);
    } else {
        ZVAL_STR(&callable, parts->function_handler->common.function_name);
    }
#else
    ZVAL_COPY_VALUE(&callable, &entry->fci.function_name);
#endif
    return callable;
}

/* ---- fibers -------------------------------------------------------------------------------- */

/* Sets the stack limits. Since 8.3 the engine knows where a stack ends, and throws before that. */
static inline void samovar_stack_is(zend_fiber_stack *stack) {
#ifdef ZEND_CHECK_STACK_LIMIT
    EG(stack_base) = zend_fiber_stack_base(stack);
    EG(stack_limit) = zend_fiber_stack_limit(stack);
#else
    (void)stack;
#endif
}

/* ---- the memory limit ---------------------------------------------------------------------- */

/* Returns true for a fatal error of the memory limit. Since 8.2.33 that error is an unwind that
 * looks like exit(); this distinguishes the two. */
static inline bool samovar_is_out_of_memory(void) {
#ifdef ZEND_HAS_OOM
    return ZEND_HAS_OOM();
#else
    return false;
#endif
}

/* Clears the error once it has been reported, so that shutdown functions may run after it. */
static inline void samovar_forget_out_of_memory(void) {
#ifdef ZEND_HAS_OOM
    EG(delayed_oom).state = ZEND_OOM_STATE_NONE;
#endif
}

/* ---- calls that are evaluated while a script is compiled ----------------------------------- */

/* Makes the compiler emit a call of the function each time, and not a constant: the function's
 * result may differ in another process. */
static inline void samovar_never_respond_early(zend_function *function) {
#ifdef ZEND_ACC_COMPILE_TIME_EVAL
    function->common.fn_flags &= ~ZEND_ACC_COMPILE_TIME_EVAL;
#else
    (void)function;
#endif
}

/* ---- types --------------------------------------------------------------------------------- */

/* Maximum number of parts of a type, and of parts of such a part (A&B), that is checked. */
enum { SAMOVAR_TYPE_PARTS_MAX = 16 };

static inline bool samovar_type_is_small(const zend_type *type) {
    const zend_type *part;
    if (!ZEND_TYPE_HAS_LIST(*type)) {
        return true;
    }
    if (ZEND_TYPE_LIST(*type)->num_types > SAMOVAR_TYPE_PARTS_MAX) {
        return false;
    }
    ZEND_TYPE_LIST_FOREACH(ZEND_TYPE_LIST(*type), part) {
        if (ZEND_TYPE_HAS_LIST(*part) &&
            ZEND_TYPE_LIST(*part)->num_types > SAMOVAR_TYPE_PARTS_MAX) {
            return false;
        }
    }
    ZEND_TYPE_LIST_FOREACH_END();
    return true;
}

/* Returns true if a declared type of PHP code accepts the value, which may be converted. Until 8.4
 * the engine needs room for the classes that it finds. Larger types accept all values. */
static inline bool samovar_type_accepts(zend_type *type, zval *value) {
    if (ZEND_TYPE_CONTAINS_CODE(*type, Z_TYPE_P(value)) || !samovar_type_is_small(type)) {
        return true;
    }
#if PHP_VERSION_ID >= 80500
    return zend_check_user_type_slow(type, value, NULL, true);
#else
    void *classes[SAMOVAR_TYPE_PARTS_MAX * SAMOVAR_TYPE_PARTS_MAX] = {NULL};
    return zend_check_user_type_slow(type, value, NULL, classes, true);
#endif
}

/* exit() is a function, not an opcode. */
#define SAMOVAR_EXIT_IS_FUNCTION (PHP_VERSION_ID >= 80400)

#endif
