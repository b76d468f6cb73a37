/* PHP values in the form in which caches store them, and the choice of the request that makes a
 * value. */
#include "functions/cached.h"
#include <ext/standard/php_var.h>

/* Maximum wait for another request that makes a value. After that this request makes it, too. */
static const double MAKE_WAIT_SECONDS_MAX = 30;

/* ---- values -------------------------------------------------------------------------------- */

static void serialize(samovar_stored *s, zval *value) {
    php_serialize_data_t state;
    PHP_VAR_SERIALIZE_INIT(state);
    php_var_serialize(&s->text, value, &state);
    PHP_VAR_SERIALIZE_DESTROY(state);
    s->kind = SAMOVAR_CACHED_SERIALIZED;
    s->bytes = s->text.s ? ZSTR_VAL(s->text.s) : "";
    s->len = s->text.s ? ZSTR_LEN(s->text.s) : 0;
}

bool samovar_cached_store_as(samovar_stored *s, zval *value) {
    memset(s, 0, sizeof *s);
    ZVAL_DEREF(value);
    switch (Z_TYPE_P(value)) {
    case IS_STRING:
        s->kind = SAMOVAR_CACHED_STRING;
        s->bytes = Z_STRVAL_P(value);
        s->len = Z_STRLEN_P(value);
        return true;
    case IS_LONG:
        s->kind = SAMOVAR_CACHED_INT;
        s->number.integer = Z_LVAL_P(value);
        s->bytes = (const char *)&s->number;
        s->len = sizeof s->number.integer;
        return true;
    case IS_DOUBLE:
        s->kind = SAMOVAR_CACHED_FLOAT;
        s->number.real = Z_DVAL_P(value);
        s->bytes = (const char *)&s->number;
        s->len = sizeof s->number.real;
        return true;
    case IS_TRUE:
        s->kind = SAMOVAR_CACHED_TRUE;
        return true;
    case IS_FALSE:
        s->kind = SAMOVAR_CACHED_FALSE;
        return true;
    case IS_NULL:
        s->kind = SAMOVAR_CACHED_NULL;
        return true;
    default:
        serialize(s, value);
        return !EG(exception);
    }
}

void samovar_cached_free(samovar_stored *s) {
    smart_str_free(&s->text);
}

void samovar_cached_value(int kind, const char *bytes, size_t len, zval *to) {
    zend_long integer = 0;
    double real = 0;
    switch (kind) {
    case SAMOVAR_CACHED_STRING:
        ZVAL_STRINGL_FAST(to, bytes, len);
        return;
    case SAMOVAR_CACHED_INT:
        memcpy(&integer, bytes, MIN(len, sizeof integer));
        ZVAL_LONG(to, integer);
        return;
    case SAMOVAR_CACHED_FLOAT:
        memcpy(&real, bytes, MIN(len, sizeof real));
        ZVAL_DOUBLE(to, real);
        return;
    case SAMOVAR_CACHED_TRUE:
    case SAMOVAR_CACHED_FALSE:
        ZVAL_BOOL(to, kind == SAMOVAR_CACHED_TRUE);
        return;
    case SAMOVAR_CACHED_SERIALIZED: {
        /* Code called by the unserialization may use the cache meanwhile, so the bytes are
         * copied. */
        zend_string *copy = zend_string_init(bytes, len, 0);
        ZVAL_FALSE(to);
        php_unserialize_with_options(to, ZSTR_VAL(copy), ZSTR_LEN(copy), NULL, "unserialize");
        zend_string_release(copy);
        return;
    }
    default:
        ZVAL_NULL(to);
    }
}

/* ---- making a value ------------------------------------------------------------------------ */

void samovar_cached_made(uint32_t cache, const zend_string *key, int turn) {
    if (turn == SAMOVAR_MAKES_MINE) {
        samovar_cache_made(cache, ZSTR_VAL(key), ZSTR_LEN(key));
    }
}

bool samovar_cached_turn(uint32_t cache, const zend_string *key, samovar_look look, void *of,
                         int *turn, zval *to) {
    if (look(of, false, to) || EG(exception)) {
        return false;
    }
    for (;;) {
        *turn = samovar_cache_make(cache, ZSTR_VAL(key), ZSTR_LEN(key));
        if (*turn < 0) {
            samovar_throw_problem();
            return false;
        }
        /* Another request may have made the value just before this request became its maker. */
        if (look(of, *turn == SAMOVAR_MAKES_OTHER, to) || EG(exception)) {
            samovar_cached_made(cache, key, *turn);
            return false;
        }
        if (*turn != SAMOVAR_MAKES_OTHER) {
            return true;
        }
        const int woken =
            samovar_cache_wait(cache, ZSTR_VAL(key), ZSTR_LEN(key), MAKE_WAIT_SECONDS_MAX);
        if (woken < 0) {
            samovar_throw_problem();
            return false;
        }
        if (woken == 0) {
            *turn = SAMOVAR_MAKES_UNKNOWN;
            return true;
        }
    }
}
