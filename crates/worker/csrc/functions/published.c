/* Samovar\publish() and Samovar\published(). A value is sent to the server in the encoding of
 * crates/published/src/encoding.rs. PHP then reads it in place, in PHP's own format. */
#include "functions/shared.h"
#include <zend_smart_str.h>
#include <stddef.h>
#include "functions/arginfo/prototypes.h"

/* ---- assumptions of crates/published/src/layout.rs ----------------------------------------- */

#define SAMOVAR_SAME(name, what) _Static_assert(what, "layout.rs: " name)

SAMOVAR_SAME("VALUE_BYTES",
             sizeof(zval) == 16 && offsetof(zval, u1) == 8 && offsetof(zval, u2) == 12);
SAMOVAR_SAME("BUCKET_BYTES",
             sizeof(Bucket) == 32 && offsetof(Bucket, h) == 16 && offsetof(Bucket, key) == 24);
SAMOVAR_SAME("TABLE_BYTES",
             sizeof(HashTable) == 56 && offsetof(HashTable, u) == 8 &&
                 offsetof(HashTable, nTableMask) == 12 && offsetof(HashTable, arData) == 16 &&
                 offsetof(HashTable, nNumUsed) == 24 && offsetof(HashTable, nNumOfElements) == 28 &&
                 offsetof(HashTable, nTableSize) == 32 &&
                 offsetof(HashTable, nInternalPointer) == 36 &&
                 offsetof(HashTable, nNextFreeElement) == 40 &&
                 offsetof(HashTable, pDestructor) == 48);
SAMOVAR_SAME("STRING_HEAD_BYTES", offsetof(zend_string, h) == 8 &&
                                      offsetof(zend_string, len) == 16 &&
                                      offsetof(zend_string, val) == 24);
SAMOVAR_SAME("TYPE_…", IS_NULL == 1 && IS_FALSE == 2 && IS_TRUE == 3 && IS_LONG == 4 &&
                           IS_DOUBLE == 5 && IS_INTERNED_STRING_EX == 6 && IS_ARRAY == 7);
SAMOVAR_SAME("STRING_INFO",
             (GC_STRING | (IS_STR_INTERNED << GC_FLAGS_SHIFT)) == (6 | 1 << 4 | 1 << 6));
SAMOVAR_SAME("ARRAY_INFO", (IS_ARRAY | ((GC_NOT_COLLECTABLE | GC_IMMUTABLE) << GC_FLAGS_SHIFT)) ==
                               (7 | 1 << 4 | 1 << 6));
SAMOVAR_SAME("FLAG_…", HASH_FLAG_PACKED == 1 << 2 && HASH_FLAG_UNINITIALIZED == 1 << 3 &&
                           HASH_FLAG_STATIC_KEYS == 1 << 4);
SAMOVAR_SAME("SIZE_MIN, MASK_MIN", HT_MIN_SIZE == 8 && HT_MIN_MASK == (uint32_t)-2);
SAMOVAR_SAME("SIZE_MAX", HT_MAX_SIZE >= 0x40000000);
SAMOVAR_SAME("NO_INDEX", HT_INVALID_IDX == (uint32_t)-1);
#if SIZEOF_ZEND_LONG != 8
#error "layout.rs: integers of 64 bits"
#endif

/* ---- the encoding -------------------------------------------------------------------------- */

enum { TAG_NULL, TAG_FALSE, TAG_TRUE, TAG_INT, TAG_FLOAT, TAG_STRING, TAG_LIST, TAG_MAP };
/* DEPTH_MAX of encoding.rs. */
enum { DEPTH_MAX = 128 };

typedef struct {
    char *to;     /* NULL: only measure */
    size_t bytes; /* so far */
    size_t depth;
    struct {
        zend_string *name; /* NULL: an index */
        zend_ulong index;
    } path[DEPTH_MAX];
    const zval *refused; /* value that cannot be published; the path leads to it */
    bool too_deep;
} encoder;

static void put(encoder *e, const void *from, size_t bytes) {
    if (e->to) {
        memcpy(e->to + e->bytes, from, bytes);
    }
    e->bytes += bytes;
}

static void put_tag(encoder *e, char tag) {
    put(e, &tag, 1);
}

static bool put_string(encoder *e, const zend_string *text) {
    if (ZSTR_LEN(text) > UINT32_MAX) {
        return false;
    }
    uint32_t len = (uint32_t)ZSTR_LEN(text);
    put_tag(e, TAG_STRING);
    put(e, &len, sizeof len);
    put(e, ZSTR_VAL(text), len);
    return true;
}

static bool put_value(encoder *e, const zval *value);

static bool put_array(encoder *e, HashTable *array) {
    if (e->depth == DEPTH_MAX) {
        e->too_deep = true;
        return false;
    }
    const bool is_list = zend_array_is_list(array);
    const uint32_t count = zend_hash_num_elements(array);
    const zend_long next = array->nNextFreeElement;
    put_tag(e, is_list ? TAG_LIST : TAG_MAP);
    put(e, &count, sizeof count);
    put(e, &next, sizeof next);
    zend_ulong index;
    zend_string *name;
    zval *value;
    e->depth++;
    ZEND_HASH_FOREACH_KEY_VAL(array, index, name, value) {
        e->path[e->depth - 1].name = name;
        e->path[e->depth - 1].index = index;
        if (name && !is_list) {
            if (!put_string(e, name)) {
                e->refused = value;
                return false;
            }
        } else if (!is_list) {
            put_tag(e, TAG_INT);
            put(e, &index, sizeof index);
        }
        if (!put_value(e, value)) {
            return false;
        }
    }
    ZEND_HASH_FOREACH_END();
    e->depth--;
    return true;
}

/* Encodes a value. Returns false if it cannot be published; `e` has the reason. */
static bool put_value(encoder *e, const zval *value) {
    /* A reference with a single owner, as `foreach ($a as &$v)` leaves it. */
    if (Z_TYPE_P(value) == IS_REFERENCE && Z_REFCOUNT_P(value) == 1) {
        value = Z_REFVAL_P(value);
    }
    switch (Z_TYPE_P(value)) {
    case IS_NULL:
        put_tag(e, TAG_NULL);
        return true;
    case IS_FALSE:
        put_tag(e, TAG_FALSE);
        return true;
    case IS_TRUE:
        put_tag(e, TAG_TRUE);
        return true;
    case IS_LONG:
        put_tag(e, TAG_INT);
        put(e, &Z_LVAL_P(value), sizeof Z_LVAL_P(value));
        return true;
    case IS_DOUBLE:
        put_tag(e, TAG_FLOAT);
        put(e, &Z_DVAL_P(value), sizeof Z_DVAL_P(value));
        return true;
    case IS_STRING:
        if (put_string(e, Z_STR_P(value))) {
            return true;
        }
        break;
    case IS_ARRAY:
        return put_array(e, Z_ARRVAL_P(value));
    default:
        break;
    }
    e->refused = value;
    return false;
}

/* Returns the path to the current value: "$value['rates'][3]". */
static zend_string *path_of(const encoder *e) {
    smart_str text = {0};
    smart_str_appends(&text, "$value");
    for (size_t i = 0; i < e->depth; i++) {
        if (e->path[i].name) {
            smart_str_appends(&text, "['");
            smart_str_append(&text, e->path[i].name);
            smart_str_appends(&text, "']");
        } else {
            smart_str_appendc(&text, '[');
            smart_str_append_long(&text, (zend_long)e->path[i].index);
            smart_str_appendc(&text, ']');
        }
    }
    smart_str_0(&text);
    return text.s;
}

static void refuse(const encoder *e, const zend_string *name) {
    zend_string *path = path_of(e);
    if (e->too_deep) {
        zend_argument_value_error(2, "must not be nested deeper than %d arrays, as %.120s… is",
                                  DEPTH_MAX, ZSTR_VAL(path));
    } else if (Z_TYPE_P(e->refused) == IS_REFERENCE) {
        zend_type_error("Samovar\\publish(): `%s` cannot be published: %s is a reference\n"
                        "hint: assign the value by copy, without `&`",
                        ZSTR_VAL(name), ZSTR_VAL(path));
    } else {
        zend_type_error("Samovar\\publish(): `%s` cannot be published: %s is of type %s\n"
                        "hint: publish null, bools, numbers, strings and arrays of these",
                        ZSTR_VAL(name), ZSTR_VAL(path), zend_zval_type_name(e->refused));
    }
    zend_string_release(path);
}

ZEND_FUNCTION(Samovar_publish) {
    zend_string *name;
    zval *value;
    ZEND_PARSE_PARAMETERS_START(2, 2)
    Z_PARAM_STR(name)
    Z_PARAM_ZVAL(value)
    ZEND_PARSE_PARAMETERS_END();
    if (Z_TYPE_P(value) != IS_NULL) {
        encoder e = {0};
        if (!put_value(&e, value)) {
            refuse(&e, name);
            RETURN_THROWS();
        }
        char *room = samovar_publish_room(e.bytes);
        if (!room) {
            samovar_throw_problem();
            RETURN_THROWS();
        }
        /* No PHP code runs in between, so the value is the same as the measured one. */
        encoder again = {.to = room};
        put_value(&again, value);
    }
    if (!samovar_publish_send(ZSTR_VAL(name), ZSTR_LEN(name))) {
        samovar_throw_problem();
        RETURN_THROWS();
    }
}

ZEND_FUNCTION(Samovar_published) {
    zend_string *name;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_STR(name)
    ZEND_PARSE_PARAMETERS_END();
    samovar_found found;
    int is_there = samovar_published_find(ZSTR_VAL(name), ZSTR_LEN(name), ZSTR_HASH(name), &found);
    if (is_there < 0) {
        samovar_throw_problem();
        RETURN_THROWS();
    }
    if (is_there == 0) {
        RETURN_NULL();
    }
    Z_LVAL_P(return_value) = (zend_long)found.word;
    Z_TYPE_INFO_P(return_value) = found.kind;
}
