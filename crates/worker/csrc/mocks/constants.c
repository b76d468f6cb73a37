/* Doubles of constants.
 *
 * A global constant gets another value in place. A constant of a class is replaced by another
 * structure in the tables of the class and of those that inherit it. Compiled code caches pointers
 * to both; once a structure has been replaced, the opcode handlers here clear these caches before
 * each use. */
#include "mocks/constants.h"
#include "mocks/doubles.h"
#include <zend_constants.h>
#include <zend_exceptions.h>
#include <zend_inheritance.h>

/* Maximum number of doubles of constants at the same time. */
enum { CONSTANTS_MAX = 10000 };

typedef struct constant {
    struct constant *next; /* the newest first */
    zend_string *target;
    uint64_t number;
    zend_string *name; /* of a global constant, as the engine has it; else of the class constant */
    zend_class_entry *ce;           /* NULL: a global constant */
    zval before;                    /* of a global constant; undefined: there was none */
    zend_class_constant *original;  /* the class's own or inherited one; NULL: there was none */
    zend_class_constant *replacing; /* in the tables of classes */
} constant;

static constant *newest;
static uint32_t constant_count;
/* Removed doubles of class constants. Reflection may point to them until the end of the request. */
static constant *removed;
/* Entries that a double has replaced, by the address of the class, by name of the constant. */
static HashTable originals;
static bool has_originals;
/* Structures that compiled code may point to have been removed. */
static bool has_removed_global, has_removed_of_class;
static user_opcode_handler_t inner_global, inner_of_class;

/* ---- caches of compiled code --------------------------------------------------------------- */

static void **cache_of(const zend_execute_data *execute_data, uint32_t at) {
    return (void **)((char *)EX(run_time_cache) + at);
}

static int on_global(zend_execute_data *execute_data) {
    if (UNEXPECTED(has_removed_global)) {
        *cache_of(execute_data, EX(opline)->extended_value) = NULL;
    }
    return inner_global ? inner_global(execute_data) : ZEND_USER_OPCODE_DISPATCH;
}

static int on_of_class(zend_execute_data *execute_data) {
    const zend_op *opline = EX(opline);
    if (UNEXPECTED(has_removed_of_class) &&
        (opline->op1_type == IS_CONST || opline->op2_type == IS_CONST)) {
        void **cache = cache_of(execute_data, opline->extended_value);
        cache[0] = cache[1] = NULL;
    }
    return inner_of_class ? inner_of_class(execute_data) : ZEND_USER_OPCODE_DISPATCH;
}

void samovar_mock_constants_startup(void) {
    inner_global = zend_get_user_opcode_handler(ZEND_FETCH_CONSTANT);
    inner_of_class = zend_get_user_opcode_handler(ZEND_FETCH_CLASS_CONSTANT);
    zend_set_user_opcode_handler(ZEND_FETCH_CONSTANT, on_global);
    zend_set_user_opcode_handler(ZEND_FETCH_CLASS_CONSTANT, on_of_class);
}

/* ---- the list ------------------------------------------------------------------------------ */

static constant *add(zend_string *target, zend_string *name) {
    if (constant_count >= CONSTANTS_MAX) {
        zend_throw_error(NULL,
                         "There are %d doubles of constants already\n"
                         "hint: call Samovar\\Mock::restoreAll() at the end of a test",
                         CONSTANTS_MAX);
        return NULL;
    }
    constant *c = ecalloc(1, sizeof *c);
    c->target = zend_string_copy(target);
    c->name = zend_string_copy(name);
    c->number = samovar_double_next_number();
    ZVAL_UNDEF(&c->before);
    c->next = newest;
    newest = c;
    constant_count++;
    return c;
}

/* ---- global constants ---------------------------------------------------------------------- */

static const char *const words[] = {"true", "false", "null"};

/* The namespace of a constant is in lower case. */
static zend_string *engine_name(const zend_string *name) {
    const char *text = ZSTR_VAL(name);
    size_t len = ZSTR_LEN(name);
    zend_string *own = zend_string_init(text, len, 0);
    const char *end = zend_memrchr(text, '\\', len);
    if (end) {
        zend_str_tolower(ZSTR_VAL(own), end - text);
    }
    return own;
}

static bool is_word(const zend_string *name) {
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(ZSTR_VAL(name), words[i]) == 0) {
            return true;
        }
    }
    return ZSTR_LEN(name) > 4 && strncmp(ZSTR_VAL(name), "__", 2) == 0 &&
           strcmp(ZSTR_VAL(name) + ZSTR_LEN(name) - 2, "__") == 0;
}

static void replace_global(zend_string *target, zval *value) {
    if (ZSTR_LEN(target) == 0 || is_word(target)) {
        zend_throw_error(NULL,
                         "`%s` is a word of the language, not a constant\n"
                         "hint: move it into a function or constant, and replace that",
                         ZSTR_VAL(target));
        return;
    }
    zend_string *name = engine_name(target);
    zend_constant *existing = zend_hash_find_ptr(EG(zend_constants), name);
    constant *c = add(target, name);
    if (c && existing) {
        ZVAL_COPY_VALUE(&c->before, &existing->value);
        ZVAL_COPY(&existing->value, value);
    } else if (c) {
        zend_constant made;
        memset(&made, 0, sizeof made);
        ZVAL_COPY(&made.value, value);
        ZEND_CONSTANT_SET_FLAGS(&made, 0, PHP_USER_CONSTANT);
        made.name = zend_string_copy(name);
        zend_register_constant(&made);
    }
    zend_string_release(name);
}

static void restore_global(constant *c) {
    zend_constant *now = zend_hash_find_ptr(EG(zend_constants), c->name);
    if (!Z_ISUNDEF(c->before) && now) {
        zval value;
        ZVAL_COPY_VALUE(&value, &now->value);
        ZVAL_COPY_VALUE(&now->value, &c->before);
        zval_ptr_dtor(&value);
    } else if (now) {
        has_removed_global = true;
        zend_hash_del(EG(zend_constants), c->name);
    }
}

/* ---- constants of classes ------------------------------------------------------------------ */

static zend_class_constant *entry_of(zend_class_entry *ce, zend_string *name) {
    return zend_hash_find_ptr(CE_CONSTANTS_TABLE(ce), name);
}

/* In the memory of opcache, which is read-only here. */
static bool is_shared(const zend_class_entry *ce) {
    return (ce->ce_flags & ZEND_ACC_IMMUTABLE) && ce->type == ZEND_USER_CLASS;
}

static zend_ulong index_of(const zend_class_entry *ce) {
    return (zend_ulong)(uintptr_t)ce;
}

/* The table of the replaced entries of this name. */
static HashTable *originals_of(zend_string *name) {
    if (!has_originals) {
        has_originals = true;
        zend_hash_init(&originals, 8, NULL, NULL, 0);
    }
    HashTable *found = zend_hash_find_ptr(&originals, name);
    if (!found) {
        found = zend_new_array(8);
        zend_hash_add_new_ptr(&originals, name, found);
    }
    return found;
}

static const constant *double_with(const zend_class_constant *replacing, const constant *leaving) {
    const constant *c = newest;
    while (c && c->replacing != replacing) {
        c = c->next;
    }
    return c || !leaving || leaving->replacing != replacing ? c : leaving;
}

/* The entry of a class without doubles. A class that was declared meanwhile has inherited the
 * structure of a double. `leaving`: a double that is no longer in the list, or NULL. */
static zend_class_constant *original_of(zend_class_entry *ce, zend_string *name,
                                        const constant *leaving) {
    const zval *known = zend_hash_index_find(originals_of(name), index_of(ce));
    if (known) {
        return Z_PTR_P(known);
    }
    zend_class_constant *now = entry_of(ce, name);
    const constant *c = now ? double_with(now, leaving) : NULL;
    return c ? c->original : now;
}

/* Whether the class has the constant that the double replaces: its own, or an inherited one. */
static bool applies(const constant *c, const zend_class_entry *ce,
                    const zend_class_constant *original) {
    return instanceof_function(ce, c->ce) &&
           (c->original ? original && original->ce == c->original->ce : !original);
}

/* The double of the nearest class counts, of several the newest. */
static const constant *double_of(const zend_class_entry *ce, const zend_string *name,
                                 const zend_class_constant *original) {
    const constant *nearest = NULL;
    for (const constant *c = newest; c; c = c->next) {
        if (c->ce && zend_string_equals(c->name, name) && applies(c, ce, original) &&
            (!nearest || (c->ce != nearest->ce && instanceof_function(c->ce, nearest->ce)))) {
            nearest = c;
        }
    }
    return nearest;
}

/* Sets the entries of this name in all classes. PHP's own classes have a structure each, also of
 * inherited constants. */
static void update(zend_string *name, const constant *leaving) {
    zend_class_entry *ce;
    ZEND_HASH_FOREACH_PTR(CG(class_table), ce) {
        if (is_shared(ce) || !(ce->ce_flags & ZEND_ACC_LINKED)) {
            continue;
        }
        zend_class_constant *now = entry_of(ce, name);
        zend_class_constant *original = original_of(ce, name, leaving);
        const constant *c = double_of(ce, name, original);
        zend_class_constant *wanted = c ? c->replacing : original;
        if (wanted == now) {
            continue;
        }
        zend_hash_index_update_ptr(originals_of(name), index_of(ce), original);
        if (wanted) {
            zend_hash_update_ptr(CE_CONSTANTS_TABLE(ce), name, wanted);
        } else {
            zend_hash_del(CE_CONSTANTS_TABLE(ce), name);
        }
    }
    ZEND_HASH_FOREACH_END();
}

static void replace_of_class(zend_string *target, size_t class_len, zval *value) {
    zend_string *class_name = zend_string_init(ZSTR_VAL(target), class_len, 0);
    zend_class_entry *ce = zend_lookup_class(class_name);
    zend_string *name =
        zend_string_init(ZSTR_VAL(target) + class_len + 2, ZSTR_LEN(target) - class_len - 2, 0);
    zend_class_constant *existing = ce ? entry_of(ce, name) : NULL;
    if (EG(exception)) {
        /* Of the autoloader. */
    } else if (!ce) {
        zend_throw_error(NULL,
                         "There is no class `%s`\n"
                         "hint: check the name, or load the file that defines the class",
                         ZSTR_VAL(class_name));
    } else if (ZSTR_LEN(name) == 0 || zend_string_equals_literal_ci(name, "class")) {
        zend_throw_error(NULL, "`%s` is no constant\nhint: name one, as in Foo::BAR",
                         ZSTR_VAL(target));
    } else if (existing && (ZEND_CLASS_CONST_FLAGS(existing) & ZEND_CLASS_CONST_IS_CASE)) {
        zend_throw_error(NULL,
                         "`%s` is a case of an enum, which cannot be replaced\n"
                         "hint: replace the method that returns it",
                         ZSTR_VAL(target));
    } else if (is_shared(ce)) {
        zend_throw_error(NULL,
                         "`%s` is in the memory of opcache\n"
                         "hint: turn opcache off for the tests: -d opcache.enable=0",
                         ZSTR_VAL(target));
    } else {
        constant *c = add(target, name);
        if (c) {
            c->original = original_of(ce, name, NULL);
            c->ce = ce;
            c->replacing = ecalloc(1, sizeof *c->replacing);
            if (existing) {
                *c->replacing = *existing;
            }
            ZVAL_COPY(&c->replacing->value, value);
            ZEND_CLASS_CONST_FLAGS(c->replacing) =
                existing ? ZEND_CLASS_CONST_FLAGS(existing) : ZEND_ACC_PUBLIC;
            c->replacing->ce = ce;
            has_removed_of_class = true;
            update(name, NULL);
        }
    }
    zend_string_release(class_name);
    zend_string_release(name);
}

/* ---- replace and restore ------------------------------------------------------------------- */

void samovar_constant_replace(zend_string *target, zval *value) {
    const char *separator =
        zend_memnstr(ZSTR_VAL(target), "::", 2, ZSTR_VAL(target) + ZSTR_LEN(target));
    if (separator) {
        replace_of_class(target, separator - ZSTR_VAL(target), value);
    } else {
        replace_global(target, value);
    }
}

static void drop(constant *c) {
    if (c->replacing) {
        zval_ptr_dtor(&c->replacing->value);
        efree(c->replacing);
    }
    zend_string_release(c->target);
    zend_string_release(c->name);
    efree(c);
}

static void remove_at(constant **at) {
    constant *c = *at;
    *at = c->next;
    constant_count--;
    if (c->ce) {
        update(c->name, c);
        c->next = removed;
        removed = c;
    } else {
        restore_global(c);
        drop(c);
    }
}

void samovar_constants_restore_after(uint64_t number) {
    while (newest && newest->number > number) {
        remove_at(&newest);
    }
}

/* The newest first, so that each finds its own value. */
void samovar_constants_restore_named(const zend_string *target) {
    for (constant **at = &newest; *at;) {
        if (zend_string_equals((*at)->target, target)) {
            remove_at(at);
            at = &newest;
        } else {
            at = &(*at)->next;
        }
    }
}

void samovar_constants_end(void) {
    samovar_constants_restore_after(0);
    while (removed) {
        constant *c = removed;
        removed = c->next;
        drop(c);
    }
    if (has_originals) {
        HashTable *table;
        ZEND_HASH_FOREACH_PTR(&originals, table) {
            zend_array_destroy(table);
        }
        ZEND_HASH_FOREACH_END();
        zend_hash_destroy(&originals);
        has_originals = false;
    }
    has_removed_global = has_removed_of_class = false;
}
