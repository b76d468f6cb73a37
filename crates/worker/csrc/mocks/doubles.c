/* The table of doubles. A removed double stays in memory until the request ends, because a call of
 * it may be in progress; its closure and recorded arguments are freed at once. */
#include "mocks/doubles.h"
#include <zend_exceptions.h>

/* Maximum number of doubles at the same time. */
enum { DOUBLES_MAX = 10000 };
/* An address has zeros at its end. */
enum { ADDRESS_SHIFT = 4 };

uint32_t samovar_calls_doubled, samovar_news_doubled;

static samovar_double *newest, *removed;
/* First double by key; NULL before the first one. */
static HashTable *by_key;
static uint64_t last_number;

uint64_t samovar_double_next_number(void) {
    return ++last_number;
}

uint64_t samovar_double_last_number(void) {
    return last_number;
}

/* A closure of an internal function has a handler of its own. */
static const zend_function *without_closure(const zend_function *function) {
    const uint32_t closure = ZEND_ACC_CLOSURE | ZEND_ACC_FAKE_CLOSURE;
    if (EXPECTED(function->type != ZEND_INTERNAL_FUNCTION ||
                 !(function->common.fn_flags & closure) || !function->common.function_name)) {
        return function;
    }
    const zend_class_entry *scope = function->common.scope;
    zend_string *name = zend_string_tolower(function->common.function_name);
    const zend_function *own =
        zend_hash_find_ptr(scope ? &scope->function_table : EG(function_table), name);
    zend_string_release(name);
    return own ? own : function;
}

const void *samovar_double_key(const zend_function *function) {
    function = without_closure(function);
    return function->type == ZEND_INTERNAL_FUNCTION
               ? (const void *)(uintptr_t)function->internal_function.handler
               : function->op_array.opcodes;
}

static zend_ulong index_of(const void *key) {
    return (zend_ulong)(uintptr_t)key >> ADDRESS_SHIFT;
}

static samovar_double *first_of(const void *key) {
    return by_key ? zend_hash_index_find_ptr(by_key, index_of(key)) : NULL;
}

/* Several internal functions may share one handler. A class may have a method of a trait under two
 * names; a double of the trait's method is for both. */
static bool has_same_name(const samovar_double *d, const zend_function *function) {
    const bool is_of_trait = d->ce && (d->ce->ce_flags & ZEND_ACC_TRAIT);
    return (is_of_trait && function->type != ZEND_INTERNAL_FUNCTION) ||
           zend_string_equals_ci(d->replaced->common.function_name, function->common.function_name);
}

static bool is_for(const samovar_double *d, const zend_function *function,
                   const zend_class_entry *called) {
    if (d->key != samovar_double_key(function) || !has_same_name(d, function)) {
        return false;
    }
    const zend_class_entry *scope = function->common.scope;
    if (d->kind == SAMOVAR_DOUBLE_FUNCTION) {
        return !scope;
    }
    if (!scope) {
        return false;
    }
    return scope == d->ce || (d->ce->ce_flags & ZEND_ACC_TRAIT) ||
           (called && d->replaced->common.scope == scope && instanceof_function(called, d->ce));
}

/* The double of the class that is nearest to the called one. */
static bool is_nearer(const samovar_double *d, const samovar_double *than) {
    return !than ||
           (than->ce && d->ce && than->ce != d->ce &&
            ((than->ce->ce_flags & ZEND_ACC_TRAIT) || instanceof_function(d->ce, than->ce)));
}

samovar_double *samovar_double_find(const zend_function *function, const zend_class_entry *called) {
    samovar_double *best = NULL;
    for (samovar_double *d = first_of(samovar_double_key(function)); d; d = d->next_of_key) {
        if (is_for(d, function, called) && is_nearer(d, best)) {
            best = d;
        }
    }
    return best;
}

samovar_double *samovar_double_find_new(const zend_class_entry *ce) {
    samovar_double *d = first_of(ce);
    while (d && d->key != ce) {
        d = d->next_of_key;
    }
    return d;
}

samovar_double *samovar_double_named(const zend_string *target) {
    samovar_double *d = newest;
    while (d && !zend_string_equals_ci(d->target, target)) {
        d = d->next;
    }
    return d;
}

static void count(const samovar_double *d, int by) {
    if (d->kind == SAMOVAR_DOUBLE_NEW) {
        samovar_news_doubled += by;
    } else {
        samovar_calls_doubled += by;
    }
}

samovar_double *samovar_double_add(samovar_kind kind, const void *key, zend_class_entry *ce,
                                   zend_function *replaced, zend_string *target, zval *callable) {
    if (samovar_calls_doubled + samovar_news_doubled >= DOUBLES_MAX) {
        zend_throw_error(NULL,
                         "There are %d doubles already\n"
                         "hint: call Samovar\\Mock::restoreAll() at the end of a test",
                         DOUBLES_MAX);
        zend_string_release(target);
        zval_ptr_dtor(callable);
        return NULL;
    }
    if (!by_key) {
        ALLOC_HASHTABLE(by_key);
        zend_hash_init(by_key, 8, NULL, NULL, 0);
    }
    samovar_double *d = ecalloc(1, sizeof *d);
    d->kind = kind;
    d->key = key;
    d->ce = ce;
    d->replaced = replaced;
    d->target = target;
    ZVAL_COPY_VALUE(&d->callable, callable);
    array_init(&d->calls);
    d->number = samovar_double_next_number();
    d->next = newest;
    newest = d;
    d->next_of_key = first_of(key);
    zend_hash_index_update_ptr(by_key, index_of(key), d);
    count(d, 1);
    return d;
}

/* Takes a double out of the list of its key. */
static void unlink_from_key(const samovar_double *d) {
    samovar_double *first = first_of(d->key);
    if (first != d) {
        while (first->next_of_key != d) {
            first = first->next_of_key;
        }
        first->next_of_key = d->next_of_key;
    } else if (d->next_of_key) {
        zend_hash_index_update_ptr(by_key, index_of(d->key), d->next_of_key);
    } else {
        zend_hash_index_del(by_key, index_of(d->key));
    }
}

/* Destructors of freed values may add and remove doubles, so the table is in order before. */
static void remove_at(samovar_double **at) {
    samovar_double *d = *at;
    zval callable, calls;
    *at = d->next;
    unlink_from_key(d);
    count(d, -1);
    d->next = removed;
    removed = d;
    ZVAL_COPY_VALUE(&callable, &d->callable);
    ZVAL_COPY_VALUE(&calls, &d->calls);
    ZVAL_UNDEF(&d->callable);
    ZVAL_UNDEF(&d->calls);
    zval_ptr_dtor(&callable);
    zval_ptr_dtor(&calls);
}

void samovar_doubles_remove_after(uint64_t number) {
    while (newest && newest->number > number) {
        remove_at(&newest);
    }
}

void samovar_doubles_remove_named(const zend_string *target) {
    for (samovar_double **at = &newest; *at;) {
        if (zend_string_equals_ci((*at)->target, target)) {
            remove_at(at);
            at = &newest; /* The list may be another one. */
        } else {
            at = &(*at)->next;
        }
    }
}

void samovar_doubles_end(void) {
    samovar_doubles_remove_after(0);
    while (removed) {
        samovar_double *d = removed;
        removed = d->next;
        zend_string_release(d->target);
        efree(d);
    }
    if (by_key) {
        zend_hash_destroy(by_key);
        FREE_HASHTABLE(by_key);
        by_key = NULL;
    }
}
