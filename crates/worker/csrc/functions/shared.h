/* Objects in the memory that workers share: the Rust functions that C calls for them
 * (src/shared.rs), and their classes.
 *
 * The Rust functions never call PHP. Memory that they return belongs to them, and is valid until
 * the next call of any of them. */
#ifndef SAMOVAR_FUNCTIONS_SHARED_H
#define SAMOVAR_FUNCTIONS_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <php.h>

/* Called when PHP starts. */
void samovar_counter_startup(void);
void samovar_table_startup(void);
void samovar_lock_startup(void);
void samovar_cache_startup(void);
void samovar_limiter_startup(void);
void samovar_breaker_startup(void);

/* ---- C calls Rust -------------------------------------------------------------------------- */

enum { SAMOVAR_THROWS_ERROR = 0, SAMOVAR_THROWS_VALUE_ERROR = 1, SAMOVAR_THROWS_RUNTIME = 2 };

typedef struct {
    int thrown;
    const char *text;
} samovar_problem;

/* Returns the reason why the last call that returned -1 failed. */
const samovar_problem *samovar_shared_problem(void);

/* Returns the number that the other functions take for this object; -1: it failed. */
int64_t samovar_counter_open(const char *name, size_t len);
int64_t samovar_counter_get(uint32_t counter);
int64_t samovar_counter_add(uint32_t counter, int64_t by);
int64_t samovar_counter_set(uint32_t counter, int64_t to);
bool samovar_counter_compare_and_set(uint32_t counter, int64_t expected, int64_t to);

enum { SAMOVAR_COLUMN_INT = 0, SAMOVAR_COLUMN_FLOAT = 1, SAMOVAR_COLUMN_TEXT = 2 };
/* COLUMNS_MAX of crates/shared. */
enum { SAMOVAR_COLUMNS_MAX = 64 };

typedef struct {
    const char *name;
    size_t len;
    int kind;
    size_t at;    /* first word in a row: a number, or a text's length followed by the text */
    size_t bytes; /* maximum length of a text */
} samovar_column;

typedef struct {
    const char *name;
    size_t len;
    const char *kind;
    size_t kind_len;
} samovar_definition;

typedef struct {
    size_t column;
    int kind;
    uint64_t bits; /* an integer, or the bits of a float */
    const char *text;
    size_t len;
} samovar_value;

/* Returns the number that the other functions take for this table, in this process; -1: it
 * failed. */
int64_t samovar_table_open(const char *name, size_t len, size_t rows, size_t key_bytes,
                           const samovar_definition *columns, size_t count);
/* Returns the columns, which are valid for the life of the process. */
const samovar_column *samovar_table_columns(uint32_t table, size_t *count);
/* All of the following return -1 on failure. */
/* Returns 1 if the row was found. samovar_table_row() returns it. */
int64_t samovar_table_get(uint32_t table, const char *key, size_t len);
int64_t samovar_table_set(uint32_t table, const char *key, size_t len, const samovar_value *values,
                          size_t count);
/* Adds to a value. samovar_table_row() returns the row with the sum. */
int64_t samovar_table_add(uint32_t table, const char *key, size_t len, const samovar_value *by);
/* `both` holds the expected and the new value. Returns 1 if the new value was stored. */
int64_t samovar_table_compare_and_set(uint32_t table, const char *key, size_t len,
                                      const samovar_value both[2]);
int64_t samovar_table_delete(uint32_t table, const char *key, size_t len);
int64_t samovar_table_count(uint32_t table);
/* Finds the first row from `cursor` on, which row() and key() return; -2: there is none. */
int64_t samovar_table_next(uint32_t table, uint32_t cursor);
const uint64_t *samovar_table_row(uint32_t table);
const char *samovar_table_key(uint32_t table, size_t *len);

typedef struct {
    uint64_t word; /* of a zval */
    uint32_t kind; /* its u1.type_info */
} samovar_found;

/* Returns 1 if `found` is the value of that name, 0 if there is none, -1 on failure. The value
 * is valid until the request ends. `hash` is PHP's hash of the name. */
int samovar_published_find(const char *name, size_t len, uint64_t hash, samovar_found *found);
/* Returns memory for the encoding of a value, `bytes` long. NULL: it failed. */
char *samovar_publish_room(size_t bytes);
/* Has the server publish the value that was written there. If none was written, it removes the
 * value of that name. Returns false on failure. */
bool samovar_publish_send(const char *name, size_t len);

int64_t samovar_lock_open(const char *name, size_t len);
/* Waits for at most `seconds`. Returns 1 if the lock was acquired, 0 if it was not available, -2
 * if this request holds it already. */
int samovar_lock_acquire(uint32_t lock, double seconds);
/* Returns a number that is different in each request, and never 0. Locks that were acquired
 * under an earlier number are not held. */
uint64_t samovar_lock_turn(void);
bool samovar_lock_release(uint32_t lock);
bool samovar_lock_is_mine(uint32_t lock);

/* Returns the number that the other functions take for this limiter, in this process; -1: it
 * failed. */
int64_t samovar_limiter_open(const char *name, size_t len, double rate, int64_t burst,
                             int64_t keys);
/* Returns 0 if there are `cost` tokens, which are taken if `takes`. Otherwise returns the
 * nanoseconds until there are, or -1 on failure. */
int64_t samovar_limiter_ask(uint32_t limiter, const char *key, size_t len, int64_t cost,
                            bool takes);
/* Returns the number of available tokens; -1: it failed. */
int64_t samovar_limiter_left(uint32_t limiter, const char *key, size_t len);

typedef struct {
    double failures, slow; /* fractions of the calls */
    double slow_after;     /* seconds; 0: no call is slow */
    int64_t calls_min;
    double window, pause; /* seconds */
} samovar_breaker_rules;

enum { SAMOVAR_BREAKER_WELL = 0, SAMOVAR_BREAKER_FAILED = 1, SAMOVAR_BREAKER_UNKNOWN = 2 };

/* Returns the number that the other functions take for this breaker, in this process; -1: it
 * failed. */
int64_t samovar_breaker_open(const char *name, size_t len, const samovar_breaker_rules *rules);
/* Returns the number of a permitted call, which must be reported. 0: no call is permitted for
 * `seconds`; -1: it failed. */
int64_t samovar_breaker_ask(uint32_t breaker, double *seconds);
void samovar_breaker_report(int64_t call, int outcome);
/* Returns NULL on failure. */
const char *samovar_breaker_state(uint32_t breaker);
/* Returns -1 on failure. */
int samovar_breaker_reset(uint32_t breaker);

enum {
    SAMOVAR_CACHED_STRING = 0,
    SAMOVAR_CACHED_INT = 1,
    SAMOVAR_CACHED_FLOAT = 2,
    SAMOVAR_CACHED_TRUE = 3,
    SAMOVAR_CACHED_FALSE = 4,
    SAMOVAR_CACHED_NULL = 5,
    SAMOVAR_CACHED_SERIALIZED = 6
};
enum { SAMOVAR_CACHE_ALWAYS = 0, SAMOVAR_CACHE_ABSENT = 1, SAMOVAR_CACHE_EQUALS = 2 };
enum { SAMOVAR_CACHE_MISSING = 0, SAMOVAR_CACHE_FRESH = 1, SAMOVAR_CACHE_STALE = 2 };
enum { SAMOVAR_MAKES_OTHER = 0, SAMOVAR_MAKES_MINE = 1, SAMOVAR_MAKES_UNKNOWN = 2 };

typedef struct {
    int kind;
    const char *value;
    size_t len;
    double fresh, stale; /* seconds; fresh 0: no limit */
    int condition;
    const char *expected; /* for SAMOVAR_CACHE_EQUALS; has the same kind */
    size_t expected_len;
} samovar_cached;

/* Returns the number that the other functions take for this cache, in this process; -1: it
 * failed. */
int64_t samovar_cache_open(const char *name, size_t len, int64_t bytes);
/* All of the following return -1 on failure. */
/* Returns one of SAMOVAR_CACHE_MISSING, _FRESH and _STALE. samovar_cache_value() returns the
 * bytes. */
int samovar_cache_get(uint32_t cache, const char *key, size_t len, int *kind);
const char *samovar_cache_value(uint32_t cache, size_t *len);
/* Returns 1 if the value was stored. */
int samovar_cache_set(uint32_t cache, const char *key, size_t len, const samovar_cached *item);
/* Returns 1 and sets `sum`, or returns 0 if the existing value or the sum is not an integer. */
int samovar_cache_add(uint32_t cache, const char *key, size_t len, int64_t by, double fresh,
                      int64_t *sum);
int samovar_cache_delete(uint32_t cache, const char *key, size_t len);
int samovar_cache_clear(uint32_t cache);
/* Selects the maker of a value: one of SAMOVAR_MAKES_OTHER, _MINE and _UNKNOWN. */
int samovar_cache_make(uint32_t cache, const char *key, size_t len);
/* Called when the value is made, or is not going to be made. */
void samovar_cache_made(uint32_t cache, const char *key, size_t len);
/* Returns 1 if the cache must be searched again, 0 if the time is over. */
int samovar_cache_wait(uint32_t cache, const char *key, size_t len, double seconds);

typedef struct {
    int kind;
    bool was_read;           /* before this call */
    int64_t stored, changed; /* seconds of the wall clock */
    int64_t ttl;             /* seconds; 0: no limit */
    size_t item_bytes;       /* memory used, including the key */
    const char *value;
    size_t len;
    const char *key; /* set by samovar_noted_walk() only */
    size_t key_len;
} samovar_noted;

typedef struct {
    uint64_t hits, misses, stored, gone;
    uint64_t since; /* seconds of the wall clock */
    uint64_t slots, room, bytes;
} samovar_noted_figures;

/* Opens a cache whose values include the time when they were stored, and whose keys have any
 * length. Returns its number, which samovar_cache_delete() and the cache functions after it
 * take, too; -1: it failed. */
int64_t samovar_noted_open(const char *name, size_t len, int64_t bytes);
/* All of the following return -1 on failure. */
/* Returns 1 if the value exists; `found` is valid until the next call. With `uses`, the value
 * stays in the cache for longer. */
int samovar_noted_find(uint32_t cache, const char *key, size_t len, bool uses,
                       samovar_noted *found);
/* Returns 1 if the value was stored. Uses only kind, value and ttl of `item`. */
int samovar_noted_store(uint32_t cache, const char *key, size_t len, const samovar_noted *item,
                        bool absent);
/* Returns 1 and sets `sum`, or returns 0 if the existing value is not an integer. */
int samovar_noted_add(uint32_t cache, const char *key, size_t len, int64_t by, int64_t ttl,
                      int64_t *sum);
/* Returns 1 if the value was `before`. */
int samovar_noted_exchange(uint32_t cache, const char *key, size_t len, int64_t before,
                           int64_t after);
/* Finds the first value from position `from` on; `found` is valid until the next call. Returns
 * the position after it; -2: there is none. */
int64_t samovar_noted_walk(uint32_t cache, uint64_t from, samovar_noted *found);
void samovar_noted_tell(uint32_t cache, samovar_noted_figures *figures);

/* ---- for the classes ----------------------------------------------------------------------- */

/* Throws the error of the last failed call. */
void samovar_throw_problem(void);
/* Registers a class whose objects can be neither cloned nor serialized. `offset` is the offset
 * of the zend_object in their struct. */
zend_class_entry *samovar_shared_class(const char *name, const zend_function_entry *methods,
                                       zend_object_handlers *handlers, int offset);

#endif
