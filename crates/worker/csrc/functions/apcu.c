/* apcu_fetch() and the other functions of the apcu extension. Their results and warnings are
 * those of the extension. */
#include "functions/apcu.h"
#include "functions/cached.h"
#include <zend_exceptions.h>
#include "functions/arginfo/prototypes.h"

/* ---- single keys --------------------------------------------------------------------------- */

static bool fetch(const zend_string *key, zval *to) {
    uint32_t cache;
    samovar_noted found;
    if (!samovar_apcu_cache(&cache) ||
        samovar_noted_find(cache, ZSTR_VAL(key), ZSTR_LEN(key), true, &found) <= 0) {
        return false;
    }
    samovar_cached_value(found.kind, found.value, found.len, to);
    return true;
}

static bool exists(const zend_string *key) {
    uint32_t cache;
    samovar_noted found;
    return samovar_apcu_cache(&cache) &&
           samovar_noted_find(cache, ZSTR_VAL(key), ZSTR_LEN(key), false, &found) > 0;
}

bool samovar_apcu_delete(zend_string *key) {
    uint32_t cache;
    /* An expired value counts as missing, although its memory is still in use. */
    const bool was_there = exists(key);
    return samovar_apcu_cache(&cache) &&
           samovar_cache_delete(cache, ZSTR_VAL(key), ZSTR_LEN(key)) > 0 && was_there;
}

static bool store(const zend_string *key, zval *value, zend_long ttl, bool absent) {
    uint32_t cache;
    samovar_stored as;
    bool done = false;
    if (!samovar_apcu_cache(&cache)) {
        return false;
    }
    if (Z_TYPE_P(value) == IS_RESOURCE) {
        php_error_docref(NULL, E_WARNING, "Cannot store resources in apcu cache");
        return false;
    }
    if (samovar_cached_store_as(&as, value)) {
        const samovar_noted item = {.kind = as.kind, .value = as.bytes, .len = as.len, .ttl = ttl};
        done = samovar_noted_store(cache, ZSTR_VAL(key), ZSTR_LEN(key), &item, absent) > 0;
    }
    samovar_cached_free(&as);
    return done;
}

/* ---- functions ----------------------------------------------------------------------------- */

ZEND_FUNCTION(apcu_enabled) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_BOOL(samovar_apcu_is_on);
}

ZEND_FUNCTION(apcu_clear_cache) {
    uint32_t cache;
    ZEND_PARSE_PARAMETERS_NONE();
    if (samovar_apcu_cache(&cache)) {
        samovar_cache_clear(cache);
    }
    RETURN_TRUE;
}

static void store_many(INTERNAL_FUNCTION_PARAMETERS, bool absent) {
    zval *key, *value = NULL;
    zend_long ttl = 0;
    ZEND_PARSE_PARAMETERS_START(1, 3)
    Z_PARAM_ZVAL(key)
    Z_PARAM_OPTIONAL
    Z_PARAM_ZVAL(value)
    Z_PARAM_LONG(ttl)
    ZEND_PARSE_PARAMETERS_END();
    if (Z_TYPE_P(key) == IS_STRING) {
        RETURN_BOOL(value && store(Z_STR_P(key), value, ttl, absent));
    }
    if (Z_TYPE_P(key) != IS_ARRAY) {
        php_error_docref(NULL, E_WARNING,
                         "apc_store expects key parameter to be a string or an array of key/value "
                         "pairs.");
        RETURN_FALSE;
    }
    zend_ulong number;
    zend_string *name;
    zval *one, failed;
    ZVAL_LONG(&failed, -1);
    array_init(return_value);
    ZEND_HASH_FOREACH_KEY_VAL(Z_ARRVAL_P(key), number, name, one) {
        name = name ? zend_string_copy(name) : zend_long_to_str((zend_long)number);
        ZVAL_DEREF(one);
        if (!store(name, one, ttl, absent)) {
            zend_symtable_update(Z_ARRVAL_P(return_value), name, &failed);
        }
        zend_string_release(name);
        if (EG(exception)) {
            return;
        }
    }
    ZEND_HASH_FOREACH_END();
}

ZEND_FUNCTION(apcu_store) {
    store_many(INTERNAL_FUNCTION_PARAM_PASSTHRU, false);
}

ZEND_FUNCTION(apcu_add) {
    store_many(INTERNAL_FUNCTION_PARAM_PASSTHRU, true);
}

static void say_success(zval *success, bool is_success) {
    if (success) {
        ZEND_TRY_ASSIGN_REF_BOOL(success, is_success);
    }
}

static void add(INTERNAL_FUNCTION_PARAMETERS, bool subtracts) {
    zend_string *key;
    zend_long by = 1, ttl = 0;
    zval *success = NULL;
    uint32_t cache;
    int64_t sum = 0;
    ZEND_PARSE_PARAMETERS_START(1, 4)
    Z_PARAM_STR(key)
    Z_PARAM_OPTIONAL
    Z_PARAM_LONG(by)
    Z_PARAM_ZVAL(success)
    Z_PARAM_LONG(ttl)
    ZEND_PARSE_PARAMETERS_END();
    if (subtracts) {
        by = (zend_long)(0 - (zend_ulong)by);
    }
    const bool done = samovar_apcu_cache(&cache) &&
                      samovar_noted_add(cache, ZSTR_VAL(key), ZSTR_LEN(key), by, ttl, &sum) > 0;
    say_success(success, done);
    if (done) {
        RETURN_LONG(sum);
    }
    RETURN_FALSE;
}

ZEND_FUNCTION(apcu_inc) {
    add(INTERNAL_FUNCTION_PARAM_PASSTHRU, false);
}

ZEND_FUNCTION(apcu_dec) {
    add(INTERNAL_FUNCTION_PARAM_PASSTHRU, true);
}

ZEND_FUNCTION(apcu_cas) {
    zend_string *key;
    zend_long before, after;
    uint32_t cache;
    ZEND_PARSE_PARAMETERS_START(3, 3)
    Z_PARAM_STR(key)
    Z_PARAM_LONG(before)
    Z_PARAM_LONG(after)
    ZEND_PARSE_PARAMETERS_END();
    RETURN_BOOL(samovar_apcu_cache(&cache) &&
                samovar_noted_exchange(cache, ZSTR_VAL(key), ZSTR_LEN(key), before, after) > 0);
}

/* Returns a key of an array of keys. NULL: it is not a string, and a warning was raised. */
static zend_string *key_of(zval *one, const char *function) {
    ZVAL_DEREF(one);
    if (Z_TYPE_P(one) == IS_STRING) {
        return Z_STR_P(one);
    }
    php_error_docref(NULL, E_WARNING, "%s expects a string or array of strings.", function);
    return NULL;
}

static void fetch_many(HashTable *keys, zval *to) {
    zval *one, value;
    array_init(to);
    ZEND_HASH_FOREACH_VAL(keys, one) {
        zend_string *key = key_of(one, "apc_fetch()");
        if (key && fetch(key, &value)) {
            zend_hash_update(Z_ARRVAL_P(to), key, &value);
        }
        if (EG(exception)) {
            return;
        }
    }
    ZEND_HASH_FOREACH_END();
}

ZEND_FUNCTION(apcu_fetch) {
    zval *key, *success = NULL;
    zend_string *name, *made;
    ZEND_PARSE_PARAMETERS_START(1, 2)
    Z_PARAM_ZVAL(key)
    Z_PARAM_OPTIONAL
    Z_PARAM_ZVAL(success)
    ZEND_PARSE_PARAMETERS_END();
    if (Z_TYPE_P(key) == IS_ARRAY) {
        fetch_many(Z_ARRVAL_P(key), return_value);
        say_success(success, true);
        return;
    }
    name = zval_try_get_tmp_string(key, &made);
    if (!name) {
        RETURN_THROWS();
    }
    const bool found = fetch(name, return_value);
    zend_tmp_string_release(made);
    say_success(success, found);
    if (!found) {
        RETURN_FALSE;
    }
}

ZEND_FUNCTION(apcu_exists) {
    zval *keys, *one, yes;
    zend_string *name, *made;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_ZVAL(keys)
    ZEND_PARSE_PARAMETERS_END();
    if (Z_TYPE_P(keys) == IS_ARRAY) {
        ZVAL_TRUE(&yes);
        array_init(return_value);
        ZEND_HASH_FOREACH_VAL(Z_ARRVAL_P(keys), one) {
            zend_string *key = key_of(one, "apc_exists()");
            if (key && exists(key)) {
                zend_hash_update(Z_ARRVAL_P(return_value), key, &yes);
            }
        }
        ZEND_HASH_FOREACH_END();
        return;
    }
    name = zval_try_get_tmp_string(keys, &made);
    if (!name) {
        RETURN_THROWS();
    }
    RETVAL_BOOL(exists(name));
    zend_tmp_string_release(made);
}

static void say_what_is_deleted(void) {
    php_error_docref(NULL, E_WARNING,
                     "apc_delete() expects a string, array of strings, or APCIterator instance");
}

ZEND_FUNCTION(apcu_delete) {
    zval *keys, *key;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_ZVAL(keys)
    ZEND_PARSE_PARAMETERS_END();
    if (Z_TYPE_P(keys) == IS_STRING) {
        RETURN_BOOL(samovar_apcu_delete(Z_STR_P(keys)));
    }
    if (Z_TYPE_P(keys) == IS_OBJECT && samovar_apcu_is_iterator(keys)) {
        RETURN_BOOL(samovar_apcu_delete_all(keys));
    }
    if (Z_TYPE_P(keys) == IS_OBJECT) {
        php_error_docref(NULL, E_ERROR,
                         "apc_delete object argument must be instance of "
                         "APCUIterator.");
        RETURN_FALSE;
    }
    if (Z_TYPE_P(keys) != IS_ARRAY) {
        say_what_is_deleted();
        RETURN_FALSE;
    }
    array_init(return_value);
    ZEND_HASH_FOREACH_VAL(Z_ARRVAL_P(keys), key) {
        ZVAL_DEREF(key);
        if (Z_TYPE_P(key) != IS_STRING) {
            say_what_is_deleted();
        } else if (samovar_apcu_delete(Z_STR_P(key))) {
            continue;
        }
        Z_TRY_ADDREF_P(key);
        add_next_index_zval(return_value, key);
    }
    ZEND_HASH_FOREACH_END();
}

/* ---- apcu_entry ---------------------------------------------------------------------------- */

static bool look(void *key, bool may_be_stale, zval *to) {
    (void)may_be_stale;
    return fetch(key, to);
}

ZEND_FUNCTION(apcu_entry) {
    zend_string *key;
    zend_fcall_info info;
    zend_fcall_info_cache call;
    zend_long ttl = 0;
    uint32_t cache;
    int turn = SAMOVAR_MAKES_UNKNOWN;
    zval argument;
    ZEND_PARSE_PARAMETERS_START(2, 3)
    Z_PARAM_STR(key)
    Z_PARAM_FUNC(info, call)
    Z_PARAM_OPTIONAL
    Z_PARAM_LONG(ttl)
    ZEND_PARSE_PARAMETERS_END();
    if (!samovar_apcu_cache(&cache) ||
        !samovar_cached_turn(cache, key, look, key, &turn, return_value)) {
        return;
    }
    ZVAL_STR_COPY(&argument, key);
    info.retval = return_value;
    info.params = &argument;
    info.param_count = 1;
    zend_call_function(&info, &call);
    zval_ptr_dtor(&argument);
    if (!EG(exception) && Z_TYPE_P(return_value) != IS_UNDEF) {
        /* A value that the call itself has stored stays. */
        store(key, return_value, ttl, true);
    }
    samovar_cached_made(cache, key, turn);
}
