/* APCUIterator: a walk through the values whose keys match a pattern or are in a list. */
#include "functions/apcu.h"
#include "functions/cached.h"
#include <zend_exceptions.h>
#include <zend_interfaces.h>
#include "functions/arginfo/apcu_constants.h"
#include "functions/arginfo/apcuiterator.h"

typedef struct {
    zval search; /* a pattern, a list flipped, or null: all of them */
    zend_long format;
    bool is_made;
    bool is_nowhere; /* a walk through deleted values */
    bool has_begun;  /* there is a current value, if `key` is set */
    uint64_t next;   /* position */
    zend_string *key;
    zval value;
    zend_object std;
} iterator;

static zend_object_handlers object_handlers;
static zend_class_entry *iterator_class;

static iterator *iterator_of(zend_object *object) {
    return (iterator *)((char *)object - XtOffsetOf(iterator, std));
}

static zend_object *create(zend_class_entry *type) {
    iterator *it = zend_object_alloc(sizeof *it, type);
    zend_object_std_init(&it->std, type);
    object_properties_init(&it->std, type);
    it->std.handlers = &object_handlers;
    ZVAL_NULL(&it->search);
    ZVAL_UNDEF(&it->value);
    it->key = NULL;
    it->is_made = it->has_begun = it->is_nowhere = false;
    return &it->std;
}

static void forget_current(iterator *it) {
    if (it->key) {
        zend_string_release(it->key);
        it->key = NULL;
    }
    zval_ptr_dtor(&it->value);
    ZVAL_UNDEF(&it->value);
}

static void free_object(zend_object *object) {
    iterator *it = iterator_of(object);
    forget_current(it);
    zval_ptr_dtor(&it->search);
    zend_object_std_dtor(object);
}

static HashTable *get_gc(zend_object *object, zval **values, int *count) {
    iterator *it = iterator_of(object);
    *values = &it->value;
    *count = Z_TYPE(it->value) == IS_UNDEF ? 0 : 1;
    return zend_std_get_properties(object);
}

/* ---- walking ------------------------------------------------------------------------------- */

static bool matches_pattern(zval *pattern, const samovar_noted *found) {
    zend_function *match = zend_hash_str_find_ptr(EG(function_table), ZEND_STRL("preg_match"));
    zval arguments[2], response;
    if (!match) {
        zend_throw_error(NULL, "APCUIterator needs preg_match(), which is not available");
        return false;
    }
    ZVAL_COPY_VALUE(&arguments[0], pattern);
    ZVAL_STRINGL(&arguments[1], found->key, found->key_len);
    ZVAL_UNDEF(&response);
    zend_call_known_function(match, NULL, NULL, &response, 2, arguments, NULL);
    zval_ptr_dtor(&arguments[1]);
    return Z_TYPE(response) == IS_LONG && Z_LVAL(response) == 1;
}

static bool is_wanted(iterator *it, const samovar_noted *found) {
    switch (Z_TYPE(it->search)) {
    case IS_STRING:
        return matches_pattern(&it->search, found);
    case IS_ARRAY:
        return zend_hash_str_exists(Z_ARRVAL(it->search), found->key, found->key_len);
    default:
        return true;
    }
}

/* Finds the next value that matches. Returns false if there is none, or if there is an
 * exception. */
static bool step(iterator *it, uint64_t *place, samovar_noted *found) {
    uint32_t cache;
    int64_t next;
    if (it->is_nowhere || !samovar_apcu_cache(&cache)) {
        return false;
    }
    while (!EG(exception) && (next = samovar_noted_walk(cache, *place, found)) >= 0) {
        *place = (uint64_t)next;
        if (is_wanted(it, found)) {
            return true;
        }
    }
    return false;
}

static void add_value(zval *to, const samovar_noted *found) {
    zval value;
    samovar_cached_value(found->kind, found->value, found->len, &value);
    add_assoc_zval(to, "value", &value);
}

/* `key` belongs to the request, because code called by the unserialization may use the cache. */
static void describe(zend_long format, zend_string *key, const samovar_noted found, zval *to) {
    array_init(to);
    if (format & APC_ITER_TYPE) {
        add_assoc_string(to, "type", "user");
    }
    if (format & APC_ITER_KEY) {
        add_assoc_str(to, "key", zend_string_copy(key));
    }
    if (format & APC_ITER_VALUE) {
        add_value(to, &found);
    }
    const struct {
        zend_long which;
        const char *name;
        zend_long number;
    } rest[] = {
        {APC_ITER_NUM_HITS, "num_hits", found.was_read},
        {APC_ITER_MTIME, "mtime", found.changed},
        {APC_ITER_CTIME, "creation_time", found.stored},
        {APC_ITER_DTIME, "deletion_time", 0},
        {APC_ITER_ATIME, "access_time", found.changed},
        {APC_ITER_REFCOUNT, "ref_count", 0},
        {APC_ITER_MEM_SIZE, "mem_size", (zend_long)found.item_bytes},
        {APC_ITER_TTL, "ttl", found.ttl},
    };
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) {
        if (format & rest[i].which) {
            add_assoc_long(to, rest[i].name, rest[i].number);
        }
    }
}

static void advance(iterator *it) {
    samovar_noted found;
    forget_current(it);
    it->has_begun = true;
    if (step(it, &it->next, &found)) {
        it->key = zend_string_init(found.key, found.key_len, 0);
        describe(it->format, it->key, found, &it->value);
    }
}

/* ---- methods ------------------------------------------------------------------------------- */

/* Returns NULL if there is an exception. */
static iterator *made(zval *object) {
    iterator *it = iterator_of(Z_OBJ_P(object));
    if (!it->is_made) {
        zend_throw_error(NULL, "Trying to use uninitialized APCUIterator");
        return NULL;
    }
    return it;
}

/* Like made(), but moves to the first value if the walk has not begun. */
static iterator *begun(zval *object) {
    iterator *it = made(object);
    if (it && !it->has_begun) {
        advance(it);
    }
    return it;
}

/* Stores the names as keys: one lookup per value instead of a comparison with each name. */
static void flip(zval *to, HashTable *names) {
    zval *name, yes;
    ZVAL_TRUE(&yes);
    array_init(to);
    ZEND_HASH_FOREACH_VAL(names, name) {
        ZVAL_DEREF(name);
        if (Z_TYPE_P(name) == IS_STRING) {
            zend_hash_update(Z_ARRVAL_P(to), Z_STR_P(name), &yes);
        } else if (Z_TYPE_P(name) == IS_LONG) {
            zend_string *text = zend_long_to_str(Z_LVAL_P(name));
            zend_hash_update(Z_ARRVAL_P(to), text, &yes);
            zend_string_release(text);
        }
    }
    ZEND_HASH_FOREACH_END();
}

/* Returns false after the error was reported. */
static bool is_pattern(zval *search) {
    const samovar_noted empty = {.key = "", .key_len = 0};
    zend_function *last = zend_hash_str_find_ptr(EG(function_table), ZEND_STRL("preg_last_error"));
    zval response;
    ZVAL_UNDEF(&response);
    matches_pattern(search, &empty);
    if (EG(exception)) {
        return false;
    }
    if (last) {
        zend_call_known_function(last, NULL, NULL, &response, 0, NULL, NULL);
    }
    /* PREG_INTERNAL_ERROR: the pattern was not compiled. */
    if (Z_TYPE(response) == IS_LONG && Z_LVAL(response) == 1) {
        php_error_docref(NULL, E_ERROR, "Could not compile regular expression: %s",
                         Z_STRVAL_P(search));
        return false;
    }
    return true;
}

static ZEND_METHOD(APCUIterator, __construct) {
    zval *search = NULL;
    zend_long format = APC_ITER_ALL, chunk = 0, list = APC_LIST_ACTIVE;
    ZEND_PARSE_PARAMETERS_START(0, 4)
    Z_PARAM_OPTIONAL
    Z_PARAM_ZVAL(search)
    Z_PARAM_LONG(format)
    Z_PARAM_LONG(chunk)
    Z_PARAM_LONG(list)
    ZEND_PARSE_PARAMETERS_END();
    iterator *it = iterator_of(Z_OBJ_P(ZEND_THIS));
    if (!samovar_apcu_is_on) {
        zend_throw_error(NULL, "APC must be enabled to use APCUIterator");
        return;
    }
    if (chunk < 0) {
        php_error_docref(NULL, E_ERROR, "APCUIterator chunk size must be 0 or greater");
        return;
    }
    if (format > APC_ITER_ALL) {
        php_error_docref(NULL, E_ERROR, "APCUIterator format is invalid");
        return;
    }
    if (list != APC_LIST_ACTIVE && list != APC_LIST_DELETED) {
        php_error_docref(NULL, E_WARNING, "APCUIterator invalid list type");
        return;
    }
    if (it->is_made) {
        zend_throw_error(NULL, "An APCUIterator is made once");
        return;
    }
    if (search && Z_TYPE_P(search) == IS_STRING && Z_STRLEN_P(search) > 0) {
        if (!is_pattern(search)) {
            return;
        }
        ZVAL_COPY(&it->search, search);
    } else if (search && Z_TYPE_P(search) == IS_ARRAY) {
        flip(&it->search, Z_ARRVAL_P(search));
    }
    it->format = format;
    it->is_nowhere = list == APC_LIST_DELETED;
    it->next = 0;
    it->is_made = true;
}

static ZEND_METHOD(APCUIterator, rewind) {
    ZEND_PARSE_PARAMETERS_NONE();
    iterator *it = made(ZEND_THIS);
    if (it) {
        it->next = 0;
        advance(it);
    }
}

static ZEND_METHOD(APCUIterator, next) {
    ZEND_PARSE_PARAMETERS_NONE();
    iterator *it = begun(ZEND_THIS);
    if (it && it->key) {
        advance(it);
    }
}

static ZEND_METHOD(APCUIterator, valid) {
    ZEND_PARSE_PARAMETERS_NONE();
    const iterator *it = begun(ZEND_THIS);
    if (it) {
        RETURN_BOOL(it->key != NULL);
    }
}

static ZEND_METHOD(APCUIterator, key) {
    ZEND_PARSE_PARAMETERS_NONE();
    const iterator *it = begun(ZEND_THIS);
    if (it && it->key) {
        RETURN_STR_COPY(it->key);
    }
    if (!EG(exception)) {
        zend_throw_error(NULL, "Cannot call key() on invalid iterator");
    }
}

static ZEND_METHOD(APCUIterator, current) {
    ZEND_PARSE_PARAMETERS_NONE();
    iterator *it = begun(ZEND_THIS);
    if (it && it->key) {
        RETURN_COPY(&it->value);
    }
    if (!EG(exception)) {
        zend_throw_error(NULL, "Cannot call current() on invalid iterator");
    }
}

typedef struct {
    zend_long hits, bytes, values;
} totals;

static totals totals_of(zval *object) {
    totals all = {0};
    iterator *it = made(object);
    samovar_noted found;
    uint64_t place = 0;
    while (it && step(it, &place, &found)) {
        all.hits += found.was_read;
        all.bytes += (zend_long)found.item_bytes;
        all.values++;
    }
    return all;
}

static ZEND_METHOD(APCUIterator, getTotalHits) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_LONG(totals_of(ZEND_THIS).hits);
}

static ZEND_METHOD(APCUIterator, getTotalSize) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_LONG(totals_of(ZEND_THIS).bytes);
}

static ZEND_METHOD(APCUIterator, getTotalCount) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_LONG(totals_of(ZEND_THIS).values);
}

/* ---- for other files ----------------------------------------------------------------------- */

bool samovar_apcu_is_iterator(const zval *value) {
    return instanceof_function(Z_OBJCE_P(value), iterator_class);
}

bool samovar_apcu_delete_all(zval *object) {
    iterator *it = made(object);
    samovar_noted found;
    if (it && it->key) {
        samovar_apcu_delete(it->key);
    }
    while (it && step(it, &it->next, &found)) {
        zend_string *key = zend_string_init(found.key, found.key_len, 0);
        samovar_apcu_delete(key);
        zend_string_release(key);
    }
    if (it) {
        it->has_begun = true;
        forget_current(it);
    }
    return it && !EG(exception);
}

void samovar_apcu_iterator_startup(void) {
    zend_class_entry type;
    INIT_CLASS_ENTRY(type, "APCUIterator", samovar_methods);
    iterator_class = zend_register_internal_class(&type);
    iterator_class->create_object = create;
    zend_class_implements(iterator_class, 1, zend_ce_iterator);
    memcpy(&object_handlers, &std_object_handlers, sizeof object_handlers);
    object_handlers.offset = XtOffsetOf(iterator, std);
    object_handlers.free_obj = free_object;
    object_handlers.get_gc = get_gc;
    object_handlers.clone_obj = NULL;
}
