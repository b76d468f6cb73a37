/* Samovar\Table: rows of fixed columns that all workers share. */
#include "functions/shared.h"
#include <zend_exceptions.h>
#include <zend_interfaces.h>
#include "functions/arginfo/table.h"

typedef struct {
    uint32_t table;
    const samovar_column *columns;
    size_t count;
    zend_object std;
} table_object;

static zend_object_handlers object_handlers;

static table_object *object_of(const zval *object) {
    return (table_object *)((char *)Z_OBJ_P(object) - XtOffsetOf(table_object, std));
}

static zend_object *create(zend_class_entry *type) {
    table_object *o = zend_object_alloc(sizeof *o, type);
    zend_object_std_init(&o->std, type);
    o->std.handlers = &object_handlers;
    o->columns = NULL;
    o->count = 0;
    return &o->std;
}

/* ---- definition ---------------------------------------------------------------------------- */

static bool define(HashTable *columns, samovar_definition *to) {
    zend_string *name;
    zval *kind;
    size_t i = 0;
    ZEND_HASH_FOREACH_STR_KEY_VAL(columns, name, kind) {
        ZVAL_DEREF(kind);
        if (!name || Z_TYPE_P(kind) != IS_STRING) {
            zend_argument_value_error(3, "must be names of columns => \"int\", \"float\" or "
                                         "\"string(40)\"");
            return false;
        }
        to[i++] = (samovar_definition){ZSTR_VAL(name), ZSTR_LEN(name), Z_STRVAL_P(kind),
                                       Z_STRLEN_P(kind)};
    }
    ZEND_HASH_FOREACH_END();
    return true;
}

static ZEND_METHOD(Samovar_Table, __construct) {
    zend_string *name;
    zend_long rows, key_bytes = 64;
    HashTable *columns;
    ZEND_PARSE_PARAMETERS_START(3, 4)
    Z_PARAM_STR(name)
    Z_PARAM_LONG(rows)
    Z_PARAM_ARRAY_HT(columns)
    Z_PARAM_OPTIONAL
    Z_PARAM_LONG(key_bytes)
    ZEND_PARSE_PARAMETERS_END();
    samovar_definition definitions[SAMOVAR_COLUMNS_MAX];
    if (zend_hash_num_elements(columns) > SAMOVAR_COLUMNS_MAX) {
        zend_argument_value_error(3, "must have at most %d columns", SAMOVAR_COLUMNS_MAX);
        RETURN_THROWS();
    }
    if (!define(columns, definitions)) {
        RETURN_THROWS();
    }
    const int64_t opened = samovar_table_open(
        ZSTR_VAL(name), ZSTR_LEN(name), rows > 0 ? (size_t)rows : 0,
        key_bytes > 0 ? (size_t)key_bytes : 0, definitions, zend_hash_num_elements(columns));
    if (opened < 0) {
        samovar_throw_problem();
        RETURN_THROWS();
    }
    table_object *o = object_of(ZEND_THIS);
    o->table = (uint32_t)opened;
    o->columns = samovar_table_columns(o->table, &o->count);
}

/* ---- values -------------------------------------------------------------------------------- */

static const samovar_column *column_named(const table_object *o, const zend_string *name) {
    for (size_t i = 0; i < o->count; i++) {
        if (o->columns[i].len == ZSTR_LEN(name) &&
            memcmp(o->columns[i].name, ZSTR_VAL(name), ZSTR_LEN(name)) == 0) {
            return &o->columns[i];
        }
    }
    zend_value_error("the table has no column `%s`", ZSTR_VAL(name));
    return NULL;
}

static const char *kind_name(int kind) {
    return kind == SAMOVAR_COLUMN_INT ? "int" : kind == SAMOVAR_COLUMN_FLOAT ? "float" : "string";
}

static uint64_t bits_of(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static bool to_value(const table_object *o, const samovar_column *column, const zval *from,
                     samovar_value *to) {
    *to = (samovar_value){.column = (size_t)(column - o->columns), .kind = column->kind};
    if (column->kind == SAMOVAR_COLUMN_INT && Z_TYPE_P(from) == IS_LONG) {
        to->bits = (uint64_t)Z_LVAL_P(from);
    } else if (column->kind == SAMOVAR_COLUMN_FLOAT && Z_TYPE_P(from) == IS_DOUBLE) {
        to->bits = bits_of(Z_DVAL_P(from));
    } else if (column->kind == SAMOVAR_COLUMN_FLOAT && Z_TYPE_P(from) == IS_LONG) {
        to->bits = bits_of((double)Z_LVAL_P(from));
    } else if (column->kind == SAMOVAR_COLUMN_TEXT && Z_TYPE_P(from) == IS_STRING) {
        to->text = Z_STRVAL_P(from);
        to->len = Z_STRLEN_P(from);
    } else {
        zend_type_error("the column `%s` holds %s, %s given", column->name, kind_name(column->kind),
                        zend_zval_type_name(from));
        return false;
    }
    return true;
}

/* Reads a value from a row. A text is cut to the length of its column, even if the row has a
 * larger length. */
static void from_row(const samovar_column *column, const uint64_t *row, zval *to) {
    if (column->kind == SAMOVAR_COLUMN_INT) {
        ZVAL_LONG(to, (zend_long)row[column->at]);
    } else if (column->kind == SAMOVAR_COLUMN_FLOAT) {
        double number;
        memcpy(&number, &row[column->at], sizeof number);
        ZVAL_DOUBLE(to, number);
    } else {
        const size_t len = MIN((size_t)row[column->at], column->bytes);
        ZVAL_STRINGL_FAST(to, (const char *)&row[column->at + 1], len);
    }
}

static void whole_row(const table_object *o, zval *to) {
    const uint64_t *row = samovar_table_row(o->table);
    array_init_size(to, (uint32_t)o->count);
    for (size_t i = 0; row && i < o->count; i++) {
        zval value;
        from_row(&o->columns[i], row, &value);
        zend_hash_str_update(Z_ARRVAL_P(to), o->columns[i].name, o->columns[i].len, &value);
    }
}

/* ---- methods ------------------------------------------------------------------------------- */

static ZEND_METHOD(Samovar_Table, get) {
    zend_string *key, *name = NULL;
    ZEND_PARSE_PARAMETERS_START(1, 2)
    Z_PARAM_STR(key)
    Z_PARAM_OPTIONAL
    Z_PARAM_STR_OR_NULL(name)
    ZEND_PARSE_PARAMETERS_END();
    const table_object *o = object_of(ZEND_THIS);
    const samovar_column *column = name ? column_named(o, name) : NULL;
    if (name && !column) {
        RETURN_THROWS();
    }
    const int64_t found = samovar_table_get(o->table, ZSTR_VAL(key), ZSTR_LEN(key));
    if (found < 0) {
        samovar_throw_problem();
        RETURN_THROWS();
    }
    if (found == 0) {
        RETURN_NULL();
    }
    if (column) {
        from_row(column, samovar_table_row(o->table), return_value);
    } else {
        whole_row(o, return_value);
    }
}

static ZEND_METHOD(Samovar_Table, set) {
    zend_string *key, *name;
    HashTable *given;
    ZEND_PARSE_PARAMETERS_START(2, 2)
    Z_PARAM_STR(key)
    Z_PARAM_ARRAY_HT(given)
    ZEND_PARSE_PARAMETERS_END();
    const table_object *o = object_of(ZEND_THIS);
    samovar_value values[SAMOVAR_COLUMNS_MAX];
    size_t count = 0;
    zval *value;
    ZEND_HASH_FOREACH_STR_KEY_VAL(given, name, value) {
        ZVAL_DEREF(value);
        if (!name) {
            zend_argument_value_error(2, "must be names of columns => values");
            RETURN_THROWS();
        }
        const samovar_column *column = column_named(o, name);
        if (!column || !to_value(o, column, value, &values[count++])) {
            RETURN_THROWS();
        }
    }
    ZEND_HASH_FOREACH_END();
    if (samovar_table_set(o->table, ZSTR_VAL(key), ZSTR_LEN(key), values, count) < 0) {
        samovar_throw_problem();
        RETURN_THROWS();
    }
}

static void add(INTERNAL_FUNCTION_PARAMETERS, bool subtracts) {
    zend_string *key, *name;
    zval *given = NULL, by;
    ZEND_PARSE_PARAMETERS_START(2, 3)
    Z_PARAM_STR(key)
    Z_PARAM_STR(name)
    Z_PARAM_OPTIONAL
    Z_PARAM_NUMBER(given)
    ZEND_PARSE_PARAMETERS_END();
    const table_object *o = object_of(ZEND_THIS);
    const samovar_column *column = column_named(o, name);
    samovar_value value;
    ZVAL_LONG(&by, 1);
    if (given) {
        ZVAL_COPY_VALUE(&by, given);
    }
    if (subtracts) {
        zval minus;
        ZVAL_LONG(&minus, -1);
        mul_function(&by, &by, &minus);
    }
    if (!column || !to_value(o, column, &by, &value)) {
        RETURN_THROWS();
    }
    if (samovar_table_add(o->table, ZSTR_VAL(key), ZSTR_LEN(key), &value) < 0) {
        samovar_throw_problem();
        RETURN_THROWS();
    }
    from_row(column, samovar_table_row(o->table), return_value);
}

static ZEND_METHOD(Samovar_Table, incr) {
    add(INTERNAL_FUNCTION_PARAM_PASSTHRU, false);
}

static ZEND_METHOD(Samovar_Table, decr) {
    add(INTERNAL_FUNCTION_PARAM_PASSTHRU, true);
}

static ZEND_METHOD(Samovar_Table, compareAndSet) {
    zend_string *key, *name;
    zval *expected, *to;
    ZEND_PARSE_PARAMETERS_START(4, 4)
    Z_PARAM_STR(key)
    Z_PARAM_STR(name)
    Z_PARAM_ZVAL(expected)
    Z_PARAM_ZVAL(to)
    ZEND_PARSE_PARAMETERS_END();
    const table_object *o = object_of(ZEND_THIS);
    const samovar_column *column = column_named(o, name);
    samovar_value both[2];
    if (!column || !to_value(o, column, expected, &both[0]) || !to_value(o, column, to, &both[1])) {
        RETURN_THROWS();
    }
    const int64_t done =
        samovar_table_compare_and_set(o->table, ZSTR_VAL(key), ZSTR_LEN(key), both);
    if (done < 0) {
        samovar_throw_problem();
        RETURN_THROWS();
    }
    RETURN_BOOL(done);
}

static ZEND_METHOD(Samovar_Table, delete) {
    zend_string *key;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_STR(key)
    ZEND_PARSE_PARAMETERS_END();
    const table_object *o = object_of(ZEND_THIS);
    const int64_t done = samovar_table_delete(o->table, ZSTR_VAL(key), ZSTR_LEN(key));
    if (done < 0) {
        samovar_throw_problem();
        RETURN_THROWS();
    }
    RETURN_BOOL(done);
}

static ZEND_METHOD(Samovar_Table, count) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_LONG(MAX(samovar_table_count(object_of(ZEND_THIS)->table), 0));
}

/* ---- iteration ----------------------------------------------------------------------------- */

typedef struct {
    zend_object_iterator it; /* its data is the table */
    int64_t at;              /* the current row; negative: there is none */
    zval key, row;
} table_iterator;

static void forget(table_iterator *i) {
    zval_ptr_dtor(&i->key);
    zval_ptr_dtor(&i->row);
    ZVAL_UNDEF(&i->key);
    ZVAL_UNDEF(&i->row);
}

static void seek(table_iterator *i, int64_t from) {
    const table_object *o = object_of(&i->it.data);
    forget(i);
    i->at = samovar_table_next(o->table, (uint32_t)from);
    if (i->at == -1) {
        samovar_throw_problem();
    } else if (i->at >= 0) {
        size_t len;
        const char *key = samovar_table_key(o->table, &len);
        ZVAL_STRINGL(&i->key, key, len);
        whole_row(o, &i->row);
    }
}

static void it_free(zend_object_iterator *it) {
    forget((table_iterator *)it);
    zval_ptr_dtor(&it->data);
}

static int it_valid(zend_object_iterator *it) {
    return ((table_iterator *)it)->at >= 0 ? SUCCESS : FAILURE;
}

static zval *it_row(zend_object_iterator *it) {
    return &((table_iterator *)it)->row;
}

static void it_key(zend_object_iterator *it, zval *key) {
    ZVAL_COPY(key, &((table_iterator *)it)->key);
}

static void it_next(zend_object_iterator *it) {
    table_iterator *i = (table_iterator *)it;
    if (i->at >= 0) {
        seek(i, i->at + 1);
    }
}

static void it_rewind(zend_object_iterator *it) {
    seek((table_iterator *)it, 0);
}

static const zend_object_iterator_funcs iterator_functions = {
    .dtor = it_free,
    .valid = it_valid,
    .get_current_data = it_row,
    .get_current_key = it_key,
    .move_forward = it_next,
    .rewind = it_rewind,
};

static zend_object_iterator *iterate(zend_class_entry *ce, zval *object, int by_ref) {
    (void)ce;
    if (by_ref) {
        zend_throw_error(NULL, "The rows of a Samovar\\Table are copies: iterate by value");
        return NULL;
    }
    table_iterator *i = emalloc(sizeof *i);
    zend_iterator_init(&i->it);
    ZVAL_OBJ_COPY(&i->it.data, Z_OBJ_P(object));
    i->it.funcs = &iterator_functions;
    i->at = -2;
    ZVAL_UNDEF(&i->key);
    ZVAL_UNDEF(&i->row);
    return &i->it;
}

static ZEND_METHOD(Samovar_Table, getIterator) {
    ZEND_PARSE_PARAMETERS_NONE();
    zend_create_internal_iterator_zval(return_value, ZEND_THIS);
}

void samovar_table_startup(void) {
    zend_class_entry *ce = samovar_shared_class("Samovar\\Table", samovar_methods, &object_handlers,
                                                XtOffsetOf(table_object, std));
    ce->create_object = create;
    ce->get_iterator = iterate;
    zend_class_implements(ce, 2, zend_ce_countable, zend_ce_aggregate);
}
