/* PHP's values as caches have them, and whose turn it is to make one. */
#ifndef SAMOVAR_FUNCTIONS_CACHED_H
#define SAMOVAR_FUNCTIONS_CACHED_H

#include "functions/shared.h"
#include <zend_smart_str.h>

/* What a value is stored as: its own bytes where it has them, else those of `number` or `text`. */
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

/* To be freed in any case. False: there is an exception. */
bool samovar_cached_store_as(samovar_stored *s, zval *value);
void samovar_cached_free(samovar_stored *s);
/* The value of these bytes, which may go when it is unserialized: whatever that calls. */
void samovar_cached_value(int kind, const char *bytes, size_t len, zval *to);

/* Finds the value: true, if it is there, or if it has ended and will do all the same. */
typedef bool (*samovar_look)(void *of, bool may_be_stale, zval *to);
/* Waits until it is this request's turn to make the value of a key, and samovar_cached_made() is to
 * be called. False: it is there meanwhile, or there is an exception. */
bool samovar_cached_turn(uint32_t cache, const zend_string *key, samovar_look look, void *of,
                         int *turn, zval *to);
/* It is made, or is not going to be. */
void samovar_cached_made(uint32_t cache, const zend_string *key, int turn);

#endif
