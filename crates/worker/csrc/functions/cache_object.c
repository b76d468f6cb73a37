/* Samovar\Cache: values with a limited lifetime that all workers share. */
#include "functions/cached.h"
#include <zend_exceptions.h>
#include "functions/arginfo/cache.h"

typedef struct {
    uint32_t cache;
    zend_object std;
} cache_object;

static zend_object_handlers object_handlers;

static uint32_t cache_of(const zval *object) {
    const char *std = (const char *)Z_OBJ_P(object);
    return ((const cache_object *)(std - XtOffsetOf(cache_object, std)))->cache;
}

static zend_object *create(zend_class_entry *type) {
    cache_object *o = zend_object_alloc(sizeof *o, type);
    zend_object_std_init(&o->std, type);
    o->std.handlers = &object_handlers;
    o->cache = UINT32_MAX;
    return &o->std;
}

static ZEND_METHOD(Samovar_Cache, __construct) {
    zend_string *name;
    zend_long bytes = 4194304;
    ZEND_PARSE_PARAMETERS_START(1, 2)
    Z_PARAM_STR(name)
    Z_PARAM_OPTIONAL
    Z_PARAM_LONG(bytes)
    ZEND_PARSE_PARAMETERS_END();
    const int64_t opened = samovar_cache_open(ZSTR_VAL(name), ZSTR_LEN(name), bytes);
    if (opened < 0) {
        samovar_throw_problem();
        RETURN_THROWS();
    }
    char *std = (char *)Z_OBJ_P(ZEND_THIS);
    ((cache_object *)(std - XtOffsetOf(cache_object, std)))->cache = (uint32_t)opened;
}

/* Fetches the value that was found last. */
static void fetch(uint32_t cache, int kind, zval *to) {
    size_t len;
    const char *bytes = samovar_cache_value(cache, &len);
    samovar_cached_value(kind, bytes, len, to);
}

/* ---- methods ------------------------------------------------------------------------------- */

static ZEND_METHOD(Samovar_Cache, get) {
    zend_string *key;
    zval *otherwise = NULL;
    int kind;
    ZEND_PARSE_PARAMETERS_START(1, 2)
    Z_PARAM_STR(key)
    Z_PARAM_OPTIONAL
    Z_PARAM_ZVAL(otherwise)
    ZEND_PARSE_PARAMETERS_END();
    const uint32_t cache = cache_of(ZEND_THIS);
    const int found = samovar_cache_get(cache, ZSTR_VAL(key), ZSTR_LEN(key), &kind);
    if (found < 0) {
        samovar_throw_problem();
        RETURN_THROWS();
    }
    if (found == SAMOVAR_CACHE_FRESH) {
        fetch(cache, kind, return_value);
    } else if (otherwise) {
        RETURN_COPY_DEREF(otherwise);
    }
}

/* Returns 1 if the value was stored, 0 if not, -1 if there is an exception. */
static int store(uint32_t cache, const zend_string *key, zval *value, samovar_cached *item) {
    samovar_stored as;
    int done = -1;
    if (samovar_cached_store_as(&as, value)) {
        item->kind = as.kind;
        item->value = as.bytes;
        item->len = as.len;
        done = samovar_cache_set(cache, ZSTR_VAL(key), ZSTR_LEN(key), item);
        if (done < 0) {
            samovar_throw_problem();
        }
    }
    samovar_cached_free(&as);
    return done;
}

/* Returns true if the value would expire at once. */
static bool is_over(bool is_forever, double ttl) {
    return !is_forever && !(ttl > 0);
}

static void set(INTERNAL_FUNCTION_PARAMETERS, int condition) {
    zend_string *key;
    zval *value;
    double ttl = 0;
    bool is_forever = true;
    ZEND_PARSE_PARAMETERS_START(2, 3)
    Z_PARAM_STR(key)
    Z_PARAM_ZVAL(value)
    Z_PARAM_OPTIONAL
    Z_PARAM_DOUBLE_OR_NULL(ttl, is_forever)
    ZEND_PARSE_PARAMETERS_END();
    const uint32_t cache = cache_of(ZEND_THIS);
    if (is_over(is_forever, ttl) && condition == SAMOVAR_CACHE_ALWAYS) {
        if (samovar_cache_delete(cache, ZSTR_VAL(key), ZSTR_LEN(key)) < 0) {
            samovar_throw_problem();
            RETURN_THROWS();
        }
        RETURN_TRUE;
    }
    if (is_over(is_forever, ttl)) {
        zend_argument_value_error(3, "must be greater than 0");
        RETURN_THROWS();
    }
    samovar_cached item = {.fresh = is_forever ? 0 : ttl, .condition = condition};
    const int done = store(cache, key, value, &item);
    if (done < 0) {
        RETURN_THROWS();
    }
    RETURN_BOOL(done);
}

static ZEND_METHOD(Samovar_Cache, set) {
    set(INTERNAL_FUNCTION_PARAM_PASSTHRU, SAMOVAR_CACHE_ALWAYS);
}

static ZEND_METHOD(Samovar_Cache, add) {
    set(INTERNAL_FUNCTION_PARAM_PASSTHRU, SAMOVAR_CACHE_ABSENT);
}

static ZEND_METHOD(Samovar_Cache, replace) {
    zend_string *key;
    zval *expected, *value;
    double ttl = 0;
    bool is_forever = true;
    ZEND_PARSE_PARAMETERS_START(3, 4)
    Z_PARAM_STR(key)
    Z_PARAM_ZVAL(expected)
    Z_PARAM_ZVAL(value)
    Z_PARAM_OPTIONAL
    Z_PARAM_DOUBLE_OR_NULL(ttl, is_forever)
    ZEND_PARSE_PARAMETERS_END();
    ZVAL_DEREF(expected);
    ZVAL_DEREF(value);
    const int type = Z_TYPE_P(expected);
    if ((type != IS_STRING && type != IS_LONG) || Z_TYPE_P(value) != type) {
        zend_type_error("Samovar\\Cache::replace(): $expected and $value must be both strings or "
                        "both int, %s and %s given",
                        zend_zval_type_name(expected), zend_zval_type_name(value));
        RETURN_THROWS();
    }
    if (is_over(is_forever, ttl)) {
        zend_argument_value_error(4, "must be greater than 0");
        RETURN_THROWS();
    }
    samovar_stored before;
    samovar_cached_store_as(&before, expected);
    samovar_cached item = {.fresh = is_forever ? 0 : ttl,
                           .condition = SAMOVAR_CACHE_EQUALS,
                           .expected = before.bytes,
                           .expected_len = before.len};
    const int done = store(cache_of(ZEND_THIS), key, value, &item);
    if (done < 0) {
        RETURN_THROWS();
    }
    RETURN_BOOL(done);
}

static ZEND_METHOD(Samovar_Cache, has) {
    zend_string *key;
    int kind;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_STR(key)
    ZEND_PARSE_PARAMETERS_END();
    const int found = samovar_cache_get(cache_of(ZEND_THIS), ZSTR_VAL(key), ZSTR_LEN(key), &kind);
    if (found < 0) {
        samovar_throw_problem();
        RETURN_THROWS();
    }
    RETURN_BOOL(found == SAMOVAR_CACHE_FRESH);
}

static ZEND_METHOD(Samovar_Cache, delete) {
    zend_string *key;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_STR(key)
    ZEND_PARSE_PARAMETERS_END();
    const int done = samovar_cache_delete(cache_of(ZEND_THIS), ZSTR_VAL(key), ZSTR_LEN(key));
    if (done < 0) {
        samovar_throw_problem();
        RETURN_THROWS();
    }
    RETURN_BOOL(done);
}

static ZEND_METHOD(Samovar_Cache, clear) {
    ZEND_PARSE_PARAMETERS_NONE();
    if (samovar_cache_clear(cache_of(ZEND_THIS)) < 0) {
        samovar_throw_problem();
    }
}

static ZEND_METHOD(Samovar_Cache, increment) {
    zend_string *key;
    zend_long by = 1;
    double ttl = 0;
    bool is_forever = true;
    int64_t sum = 0;
    ZEND_PARSE_PARAMETERS_START(1, 3)
    Z_PARAM_STR(key)
    Z_PARAM_OPTIONAL
    Z_PARAM_LONG(by)
    Z_PARAM_DOUBLE_OR_NULL(ttl, is_forever)
    ZEND_PARSE_PARAMETERS_END();
    if (is_over(is_forever, ttl)) {
        zend_argument_value_error(3, "must be greater than 0");
        RETURN_THROWS();
    }
    const int done = samovar_cache_add(cache_of(ZEND_THIS), ZSTR_VAL(key), ZSTR_LEN(key), by,
                                       is_forever ? 0 : ttl, &sum);
    if (done < 0) {
        samovar_throw_problem();
        RETURN_THROWS();
    }
    if (done == 0) {
        zend_type_error("The value of `%s` is not an int, or the sum would not be one",
                        ZSTR_VAL(key));
        RETURN_THROWS();
    }
    RETURN_LONG(sum);
}

/* ---- remember ------------------------------------------------------------------------------ */

typedef struct {
    uint32_t cache;
    zend_string *key;
    double fresh, stale;
    bool is_over;
} remembered;

/* Makes the value. After an exception, or an end of the request, the next maker makes it. */
static void make(const remembered *r, zend_fcall_info *info, zend_fcall_info_cache *call,
                 zval *to) {
    info->retval = to;
    zend_call_function(info, call);
    if (!EG(exception) && !r->is_over && Z_TYPE_P(to) != IS_UNDEF) {
        samovar_cached item = {.fresh = r->fresh, .stale = r->stale};
        store(r->cache, r->key, to, &item);
    }
}

static bool look(void *of, bool may_be_stale, zval *to) {
    const remembered *r = of;
    int kind;
    const int found = samovar_cache_get(r->cache, ZSTR_VAL(r->key), ZSTR_LEN(r->key), &kind);
    if (found < 0) {
        samovar_throw_problem();
    } else if (found == SAMOVAR_CACHE_FRESH || (found == SAMOVAR_CACHE_STALE && may_be_stale)) {
        fetch(r->cache, kind, to);
        return true;
    }
    return false;
}

static ZEND_METHOD(Samovar_Cache, remember) {
    remembered r = {.cache = cache_of(ZEND_THIS)};
    bool is_forever = false;
    zend_fcall_info info;
    zend_fcall_info_cache call;
    int turn = SAMOVAR_MAKES_UNKNOWN;
    ZEND_PARSE_PARAMETERS_START(3, 4)
    Z_PARAM_STR(r.key)
    Z_PARAM_DOUBLE_OR_NULL(r.fresh, is_forever)
    Z_PARAM_FUNC(info, call)
    Z_PARAM_OPTIONAL
    Z_PARAM_DOUBLE(r.stale)
    ZEND_PARSE_PARAMETERS_END();
    r.is_over = is_over(is_forever, r.fresh);
    r.fresh = is_forever ? 0 : r.fresh;
    if (!samovar_cached_turn(r.cache, r.key, look, &r, &turn, return_value)) {
        return;
    }
    make(&r, &info, &call, return_value);
    samovar_cached_made(r.cache, r.key, turn);
}

void samovar_cache_startup(void) {
    samovar_shared_class("Samovar\\Cache", samovar_methods, &object_handlers,
                         XtOffsetOf(cache_object, std))
        ->create_object = create;
}
