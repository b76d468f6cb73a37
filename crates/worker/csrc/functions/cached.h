/* PHP values in the form in which caches store them, and the choice of the request that makes a
 * value. */
#ifndef SAMOVAR_FUNCTIONS_CACHED_H
#define SAMOVAR_FUNCTIONS_CACHED_H

#include "functions/shared.h"
#include <zend_smart_str.h>

/* A value in its stored form: its own bytes if it has them, else those of `number` or `text`. */
typedef struct {
    int kind;
    const char *bytes;
    size_t len;
    union {
        zend_long integer;
        double real;
    } number;
    smart_str text;
} samovar_stored;

/* Converts a value. The result must be freed in any case. Returns false if there is an
 * exception. */
bool samovar_cached_store_as(samovar_stored *s, zval *value);
void samovar_cached_free(samovar_stored *s);
/* Creates the value of these bytes. They may become invalid while the value is unserialized,
 * because that may call any PHP code. */
void samovar_cached_value(int kind, const char *bytes, size_t len, zval *to);

/* Finds the value. Returns true if there is one, or an expired one that may still be used. */
typedef bool (*samovar_look)(void *of, bool may_be_stale, zval *to);
/* Waits until this request must make the value of a key, and then call samovar_cached_made().
 * Returns false if the value exists by then, or if there is an exception. */
bool samovar_cached_turn(uint32_t cache, const zend_string *key, samovar_look look, void *of,
                         int *turn, zval *to);
/* Called when the value is made, or is not going to be made. */
void samovar_cached_made(uint32_t cache, const zend_string *key, int turn);

#endif
