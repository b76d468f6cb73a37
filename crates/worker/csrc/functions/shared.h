/* Objects in the memory that workers share: what C calls of Rust for them (src/shared.rs), and
 * their classes.
 *
 * The Rust functions never call PHP. What they point to belongs to them, and is valid until the
 * next of them is called. */
#ifndef SAMOVAR_FUNCTIONS_SHARED_H
#define SAMOVAR_FUNCTIONS_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <php.h>

/* When PHP starts. */
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

/* Why the last call that said -1 did. */
const samovar_problem *samovar_shared_problem(void);

/* A number by which the others know the object; -1: there is none. */
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
    size_t at;    /* of a row's words: a number, or a text's length with the text behind it */
    size_t bytes; /* of a text at most */
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
    uint64_t bits; /* an integer, or those of a float */
    const char *text;
    size_t len;
} samovar_value;

/* A number by which the others know the table in this process; -1: there is none. */
int64_t samovar_table_open(const char *name, size_t len, size_t rows, size_t key_bytes,
                           const samovar_definition *columns, size_t count);
/* Valid for the life of the process. */
const samovar_column *samovar_table_columns(uint32_t table, size_t *count);
/* All of these: -1 when it failed. */
/* 1: samovar_table_row() has it. */
int64_t samovar_table_get(uint32_t table, const char *key, size_t len);
int64_t samovar_table_set(uint32_t table, const char *key, size_t len, const samovar_value *values,
                          size_t count);
/* samovar_table_row() has the sum. */
int64_t samovar_table_add(uint32_t table, const char *key, size_t len, const samovar_value *by);
/* `both`: what is expected, and what is to be there. 1: it is. */
int64_t samovar_table_compare_and_set(uint32_t table, const char *key, size_t len,
                                      const samovar_value both[2]);
int64_t samovar_table_delete(uint32_t table, const char *key, size_t len);
int64_t samovar_table_count(uint32_t table);
/* The first row from `cursor` on, which row() and key() have; -2: there is none. */
int64_t samovar_table_next(uint32_t table, uint32_t cursor);
const uint64_t *samovar_table_row(uint32_t table);
const char *samovar_table_key(uint32_t table, size_t *len);

typedef struct {
    uint64_t word; /* of a zval */
    uint32_t kind; /* its u1.type_info */
} samovar_found;

/* 1: `found` is the value of that name, which stays until the request ends; 0: there is none; -1:
 * it failed. `hash` is PHP's, of the name. */
int samovar_published_find(const char *name, size_t len, uint64_t hash, samovar_found *found);
/* Where a value's encoding of so many bytes is to be written; NULL: it failed. */
char *samovar_publish_room(size_t bytes);
/* Has the server publish what was written there; or take the value of that name away, if nothing
 * was. false: it failed. */
bool samovar_publish_send(const char *name, size_t len);

int64_t samovar_lock_open(const char *name, size_t len);
/* Waits for at most `seconds`. 1: it is ours; 0: it was not to be had; -2: it is ours already. */
int samovar_lock_acquire(uint32_t lock, double seconds);
/* Never 0, and another one in each request: what was acquired in an earlier turn is not held. */
uint64_t samovar_lock_turn(void);
bool samovar_lock_release(uint32_t lock);
bool samovar_lock_is_mine(uint32_t lock);

/* A number by which the others know the limiter in this process; -1: there is none. */
int64_t samovar_limiter_open(const char *name, size_t len, double rate, int64_t burst,
                             int64_t keys);
/* 0: there are so many tokens, and they are taken if `takes`. Else: nanoseconds until there are;
 * -1: it failed. */
int64_t samovar_limiter_ask(uint32_t limiter, const char *key, size_t len, int64_t cost,
                            bool takes);
/* Tokens that there are; -1: it failed. */
int64_t samovar_limiter_left(uint32_t limiter, const char *key, size_t len);

typedef struct {
    double failures, slow; /* shares */
    double slow_after;     /* seconds; 0: no call is slow */
    int64_t calls_min;
    double window, pause; /* seconds */
} samovar_breaker_rules;

enum { SAMOVAR_BREAKER_WELL = 0, SAMOVAR_BREAKER_FAILED = 1, SAMOVAR_BREAKER_UNKNOWN = 2 };

/* A number by which the others know the breaker in this process; -1: there is none. */
int64_t samovar_breaker_open(const char *name, size_t len, const samovar_breaker_rules *rules);
/* The number of a call that may go through, to be reported; 0: it may not, for so many seconds;
 * -1: it failed. */
int64_t samovar_breaker_ask(uint32_t breaker, double *seconds);
void samovar_breaker_report(int64_t call, int outcome);
/* NULL: it failed. */
const char *samovar_breaker_state(uint32_t breaker);
/* -1: it failed. */
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
    double fresh, stale; /* seconds; fresh 0: for ever */
    int condition;
    const char *expected; /* for SAMOVAR_CACHE_EQUALS, of the same kind */
    size_t expected_len;
} samovar_cached;

/* A number by which the others know the cache in this process; -1: there is none. */
int64_t samovar_cache_open(const char *name, size_t len, int64_t bytes);
/* All of these: -1 when it failed. */
/* What of SAMOVAR_CACHE_MISSING and on it is; samovar_cache_value() has the bytes. */
int samovar_cache_get(uint32_t cache, const char *key, size_t len, int *kind);
const char *samovar_cache_value(uint32_t cache, size_t *len);
/* 1: it is stored. */
int samovar_cache_set(uint32_t cache, const char *key, size_t len, const samovar_cached *item);
/* 1: `sum` has it; 0: what is there is no integer, or the sum would be none. */
int samovar_cache_add(uint32_t cache, const char *key, size_t len, int64_t by, double fresh,
                      int64_t *sum);
int samovar_cache_delete(uint32_t cache, const char *key, size_t len);
int samovar_cache_clear(uint32_t cache);
/* Who makes a value: what of SAMOVAR_MAKES_OTHER and on. */
int samovar_cache_make(uint32_t cache, const char *key, size_t len);
/* It is made, or is not going to be. */
void samovar_cache_made(uint32_t cache, const char *key, size_t len);
/* 1: look again; 0: the time is over. */
int samovar_cache_wait(uint32_t cache, const char *key, size_t len, double seconds);

typedef struct {
    int kind;
    bool was_read;           /* before */
    int64_t stored, changed; /* seconds of the clock on the wall */
    int64_t ttl;             /* seconds; 0: for ever */
    size_t item_bytes;       /* that it takes, its key included */
    const char *value;
    size_t len;
    const char *key; /* of samovar_noted_walk() alone */
    size_t key_len;
} samovar_noted;

typedef struct {
    uint64_t hits, misses, stored, gone;
    uint64_t since; /* seconds of the clock on the wall */
    uint64_t slots, room, bytes;
} samovar_noted_figures;

/* The number of a cache whose values tell when they were stored; their keys are of any length, and
 * samovar_cache_delete() and all below it take it, too. -1: there is none. */
int64_t samovar_noted_open(const char *name, size_t len, int64_t bytes);
/* All of these: -1 when it failed. */
/* 1: it is there, lent until the next call; whoever uses it has it stay longer. */
int samovar_noted_find(uint32_t cache, const char *key, size_t len, bool uses,
                       samovar_noted *found);
/* 1: it is stored; kind, value and ttl are asked for. */
int samovar_noted_store(uint32_t cache, const char *key, size_t len, const samovar_noted *item,
                        bool absent);
/* 1: `sum` has it; 0: what is there is no integer. */
int samovar_noted_add(uint32_t cache, const char *key, size_t len, int64_t by, int64_t ttl,
                      int64_t *sum);
/* 1: it was `before`. */
int samovar_noted_exchange(uint32_t cache, const char *key, size_t len, int64_t before,
                           int64_t after);
/* The place after the first value from place `from` on, lent until the next call; -2: there is
 * none. */
int64_t samovar_noted_walk(uint32_t cache, uint64_t from, samovar_noted *found);
void samovar_noted_tell(uint32_t cache, samovar_noted_figures *figures);

/* ---- for the classes ----------------------------------------------------------------------- */

/* Throws what the last call has said. */
void samovar_throw_problem(void);
/* A class whose objects are neither cloned nor serialized; `offset` of the zend_object in their
 * struct. */
zend_class_entry *samovar_shared_class(const char *name, const zend_function_entry *methods,
                                       zend_object_handlers *handlers, int offset);

#endif
