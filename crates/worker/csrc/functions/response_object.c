/* write: Samovar\Response, and the other values that a handler may return. */
#include "functions/response_object.h"
#include <SAPI.h>
#include <php_output.h>
#include <zend_exceptions.h>
#include <zend_interfaces.h>
#include <ext/spl/spl_iterators.h>
#include "functions/arginfo/response.h"

typedef struct {
    zend_long status;
    zval body, headers;
    zend_object std;
} response_object;

static zend_class_entry *ce;
static zend_object_handlers object_handlers;

static response_object *object_of(zend_object *std) {
    return (response_object *)((char *)std - XtOffsetOf(response_object, std));
}

static zend_object *create(zend_class_entry *type) {
    response_object *o = zend_object_alloc(sizeof(response_object), type);
    zend_object_std_init(&o->std, type);
    o->std.handlers = &object_handlers;
    o->status = 200;
    ZVAL_EMPTY_STRING(&o->body);
    ZVAL_EMPTY_ARRAY(&o->headers);
    return &o->std;
}

static void free_object(zend_object *std) {
    response_object *o = object_of(std);
    zval_ptr_dtor(&o->body);
    zval_ptr_dtor(&o->headers);
    zend_object_std_dtor(std);
}

static HashTable *get_gc(zend_object *std, zval **table, int *n) {
    response_object *o = object_of(std);
    *table = &o->body; /* body and headers are adjacent */
    *n = 2;
    return zend_std_get_properties(std);
}

static bool is_body(zval *value) {
    if (Z_TYPE_P(value) == IS_RESOURCE) {
        return zend_fetch_resource2(Z_RES_P(value), NULL, php_file_le_stream(),
                                    php_file_le_pstream()) != NULL;
    }
    return Z_TYPE_P(value) == IS_STRING || zend_is_iterable(value);
}

static ZEND_METHOD(Samovar_Response, __construct) {
    zval *body = NULL, *headers = NULL;
    zend_long status = 200;
    ZEND_PARSE_PARAMETERS_START(0, 3)
    Z_PARAM_OPTIONAL
    Z_PARAM_ZVAL(body)
    Z_PARAM_LONG(status)
    Z_PARAM_ARRAY(headers)
    ZEND_PARSE_PARAMETERS_END();
    if (body && !is_body(body)) {
        zend_argument_type_error(1, "must be of type string, iterable or stream, %s given",
                                 zend_zval_type_name(body));
        RETURN_THROWS();
    }
    if (status < 200 || status > 599) {
        zend_argument_value_error(2, "must be a status between 200 and 599");
        RETURN_THROWS();
    }
    response_object *o = object_of(Z_OBJ_P(ZEND_THIS));
    o->status = status;
    if (body) {
        zval_ptr_dtor(&o->body);
        ZVAL_COPY(&o->body, body);
    }
    if (headers) {
        zval_ptr_dtor(&o->headers);
        ZVAL_COPY(&o->headers, headers);
    }
}

static ZEND_METHOD(Samovar_Response, status) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_LONG(object_of(Z_OBJ_P(ZEND_THIS))->status);
}

static ZEND_METHOD(Samovar_Response, headers) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_COPY(&object_of(Z_OBJ_P(ZEND_THIS))->headers);
}

static ZEND_METHOD(Samovar_Response, body) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_COPY(&object_of(Z_OBJ_P(ZEND_THIS))->body);
}

/* ---- delivery ------------------------------------------------------------------------------ */

static void add_header(zend_string *name, zval *value, bool replace) {
    zend_string *text = zval_try_get_string(value);
    if (!text) {
        return;
    }
    zend_string *line = zend_string_concat3(ZSTR_VAL(name), ZSTR_LEN(name), ": ", 2, ZSTR_VAL(text),
                                            ZSTR_LEN(text));
    sapi_header_line header = {ZSTR_VAL(line), ZSTR_LEN(line), 0};
    sapi_header_op(replace ? SAPI_HEADER_REPLACE : SAPI_HEADER_ADD, &header);
    zend_string_release(line);
    zend_string_release(text);
}

static void add_headers(HashTable *headers) {
    zend_string *name;
    zval *value;
    ZEND_HASH_FOREACH_STR_KEY_VAL(headers, name, value) {
        if (!name) {
            zend_throw_error(NULL, "Samovar\\Response headers must be name => value pairs");
            return;
        }
        ZVAL_DEREF(value);
        if (Z_TYPE_P(value) != IS_ARRAY) {
            add_header(name, value, true);
            continue;
        }
        zval *each;
        bool first = true;
        ZEND_HASH_FOREACH_VAL(Z_ARRVAL_P(value), each) {
            add_header(name, each, first);
            first = false;
        }
        ZEND_HASH_FOREACH_END();
    }
    ZEND_HASH_FOREACH_END();
}

static void write_value(zval *value) {
    zend_string *text = zval_try_get_string(value);
    if (text) {
        php_output_write(ZSTR_VAL(text), ZSTR_LEN(text));
        zend_string_release(text);
    }
}

static void write_array(HashTable *pieces) {
    zval *value;
    ZEND_HASH_FOREACH_VAL(pieces, value) {
        write_value(value);
        if (EG(exception)) {
            return;
        }
    }
    ZEND_HASH_FOREACH_END();
}

/* Sends each piece as soon as it is made: an iterable body lets an application stream. */
static int write_piece(zend_object_iterator *iterator, void *unused) {
    (void)unused;
    zval *value = iterator->funcs->get_current_data(iterator);
    if (!value || EG(exception)) {
        return ZEND_HASH_APPLY_STOP;
    }
    write_value(value);
    if (!EG(exception)) {
        php_output_end_all();
        sapi_flush();
    }
    return EG(exception) ? ZEND_HASH_APPLY_STOP : ZEND_HASH_APPLY_KEEP;
}

static void write_body(zval *body) {
    if (Z_TYPE_P(body) == IS_STRING) {
        php_output_write(Z_STRVAL_P(body), Z_STRLEN_P(body));
    } else if (Z_TYPE_P(body) == IS_ARRAY) {
        write_array(Z_ARRVAL_P(body));
    } else if (Z_TYPE_P(body) == IS_RESOURCE) {
        php_stream *stream =
            zend_fetch_resource2_ex(body, "stream", php_file_le_stream(), php_file_le_pstream());
        if (stream) {
            php_stream_passthru(stream);
        }
    } else {
        spl_iterator_apply(body, write_piece, NULL);
    }
}

void samovar_deliver(zval *returned) {
    ZVAL_DEREF(returned);
    switch (Z_TYPE_P(returned)) {
    case IS_UNDEF:
    case IS_NULL:
        return;
    case IS_STRING:
        write_body(returned);
        return;
    case IS_OBJECT:
        if (Z_OBJCE_P(returned) == ce) {
            response_object *o = object_of(Z_OBJ_P(returned));
            SG(sapi_headers).http_response_code = (int)o->status;
            add_headers(Z_ARRVAL(o->headers));
            if (!EG(exception)) {
                write_body(&o->body);
            }
            return;
        }
        ZEND_FALLTHROUGH;
    default:
        zend_throw_error(zend_ce_type_error,
                         "The handler of Samovar\\serve() must return string, Samovar\\Response or "
                         "nothing, %s returned",
                         zend_zval_type_name(returned));
    }
}

void samovar_response_startup(void) {
    zend_class_entry type;
    INIT_NS_CLASS_ENTRY(type, "Samovar", "Response", samovar_methods);
    ce = zend_register_internal_class(&type);
    ce->create_object = create;
    ce->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NO_DYNAMIC_PROPERTIES | ZEND_ACC_NOT_SERIALIZABLE;
    memcpy(&object_handlers, &std_object_handlers, sizeof object_handlers);
    object_handlers.offset = XtOffsetOf(response_object, std);
    object_handlers.free_obj = free_object;
    object_handlers.get_gc = get_gc;
    object_handlers.clone_obj = NULL;
}
