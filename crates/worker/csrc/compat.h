/* What differs between the PHP versions that the worker is built for, 8.2 to 8.4, in one place.
 * Private to this directory. */
#ifndef SAMOVAR_COMPAT_H
#define SAMOVAR_COMPAT_H

#include <php.h>
#include <ext/random/php_random.h>
#include <ext/session/php_session.h>

/* ---- flush() ------------------------------------------------------------------------------- */

/* Since 8.4 it sends the headers of an answer that has no body yet. */
enum { SAMOVAR_FLUSH_SENDS_HEADERS = PHP_VERSION_ID >= 80400 };

/* ---- tables of methods --------------------------------------------------------------------- */

#if PHP_VERSION_ID >= 80400
#define SAMOVAR_METHOD(name, handler, info, flags)                                                 \
    ZEND_RAW_FENTRY(name, handler, info, flags, NULL, NULL)
#else
#define SAMOVAR_METHOD(name, handler, info, flags) ZEND_RAW_FENTRY(name, handler, info, flags)
#endif

/* ---- session handlers ---------------------------------------------------------------------- */

/* The functions of session_set_save_handler() lie side by side: an array until 8.2, named fields
 * since 8.4. */
enum { SESSION_HANDLERS = sizeof(((php_ps_globals *)0)->mod_user_names) / sizeof(zval) };
#define SAMOVAR_SESSION_HANDLER(i) (&((zval *)&PS(mod_user_names))[i])

/* ---- random generators --------------------------------------------------------------------- */

/* The combined LCG goes on from here: two numbers above 0. */
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

/* The engine of a Random\Engine object goes on from `seed`. */
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

/* The session's own generator decides which request collects garbage; until 8.3 it was the LCG. */
static inline void samovar_session_random_forget(void) {
#if PHP_VERSION_ID >= 80400
    PS(random_seeded) = false; /* Seeds itself from the kernel when it is next used. */
#endif
}

#endif
