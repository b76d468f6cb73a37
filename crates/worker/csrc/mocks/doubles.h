/* The table of doubles of functions, methods and classes. */
#ifndef SAMOVAR_MOCKS_DOUBLES_H
#define SAMOVAR_MOCKS_DOUBLES_H

#include <php.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum { SAMOVAR_DOUBLE_FUNCTION, SAMOVAR_DOUBLE_METHOD, SAMOVAR_DOUBLE_NEW } samovar_kind;

typedef struct samovar_double {
    /* All doubles, and those of the same code; the newest first. */
    struct samovar_double *next, *next_of_key;
    samovar_kind kind;
    const void *key;         /* samovar_double_key(); NEW: the class */
    zend_class_entry *ce;    /* METHOD, NEW: the named class or trait */
    zend_function *replaced; /* FUNCTION, METHOD */
    zend_string *target;     /* `time`, `Foo::bar`, `new Foo` */
    zval callable;           /* undefined once the double is removed */
    bool is_bound;           /* METHOD: `callable` is a closure in the scope of the method */
    zend_ulong called;       /* number of calls */
    zval calls;              /* list of lists of arguments, of the first calls */
    uint64_t number;
    zend_internal_function maker; /* NEW: is called with the arguments of the constructor */
} samovar_double;

/* Maximum number of recorded calls of a double. */
enum { SAMOVAR_DOUBLE_RECORDED_MAX = 10000 };

/* Number of doubles of functions and methods, and of classes. */
extern uint32_t samovar_calls_doubled, samovar_news_doubled;

/* The code of a function: the same for all copies that inheritance, traits and closures make. */
const void *samovar_double_key(const zend_function *function);

/* Returns the double for a call; NULL: there is none. `called` is the class of `$this` or of
 * `static`, NULL outside of classes. */
samovar_double *samovar_double_find(const zend_function *function, const zend_class_entry *called);
samovar_double *samovar_double_find_new(const zend_class_entry *ce);
/* Returns the newest double with this name; case is ignored. NULL: there is none. */
samovar_double *samovar_double_named(const zend_string *target);

/* Adds a double, whose number is the newest. Takes over `callable` and `target`. Returns NULL and
 * throws if there are too many. */
samovar_double *samovar_double_add(samovar_kind kind, const void *key, zend_class_entry *ce,
                                   zend_function *replaced, zend_string *target, zval *callable);
/* Removes the doubles that have a higher number. */
void samovar_doubles_remove_after(uint64_t number);
/* Removes the doubles of this name. */
void samovar_doubles_remove_named(const zend_string *target);
/* Frees everything. */
void samovar_doubles_end(void);

/* Returns a number that is higher than all before. */
uint64_t samovar_double_next_number(void);
uint64_t samovar_double_last_number(void);

#endif
