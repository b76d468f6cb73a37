/* run: Samovar\Request, the request as a native object. Data is copied only when it is
 * requested.
 *
 * An object that outlives its request is inert: its methods return the defaults. */
#include "functions/request_object.h"
#include "sapi/sapi.h"
#include "sapi/variables.h"
#include <zend_exceptions.h>
#include <ext/standard/url.h>
#include "functions/arginfo/request.h"

typedef struct {
    uint64_t number; /* of the request that the object belongs to */
    zval attributes;
    zend_object std;
} request_object;

static zend_class_entry *ce;
static zend_object_handlers object_handlers;
static uint64_t request_number = 1;

static request_object *object_of(zend_object *std) {
    return (request_object *)((char *)std - XtOffsetOf(request_object, std));
}

static zend_object *create(zend_class_entry *type) {
    request_object *o = zend_object_alloc(sizeof(request_object), type);
    zend_object_std_init(&o->std, type);
    o->std.handlers = &object_handlers;
    o->number = 0;
    ZVAL_UNDEF(&o->attributes);
    return &o->std;
}

static void free_object(zend_object *std) {
    zval_ptr_dtor(&object_of(std)->attributes);
    zend_object_std_dtor(std);
}

zend_object *samovar_request_new(void) {
    zend_object *o = create(ce);
    object_of(o)->number = request_number;
    return o;
}

void samovar_request_expire(void) {
    request_number++;
}

static const samovar_head *head_of(zval *object) {
    return object_of(Z_OBJ_P(object))->number == request_number ? samovar_current : NULL;
}

#define HEAD_OR(otherwise)                                                                         \
    const samovar_head *r = head_of(ZEND_THIS);                                                    \
    if (UNEXPECTED(!r)) {                                                                          \
        otherwise;                                                                                 \
    }

#define TEXT_METHOD(name, field)                                                                   \
    static ZEND_METHOD(Samovar_Request, name) {                                                    \
        ZEND_PARSE_PARAMETERS_NONE();                                                              \
        HEAD_OR(RETURN_EMPTY_STRING());                                                            \
        RETURN_STRINGL_FAST(samovar_text(r, r->field), r->field.len);                              \
    }
TEXT_METHOD(method, method)
TEXT_METHOD(uri, target)
TEXT_METHOD(queryString, query)
TEXT_METHOD(protocol, protocol)
TEXT_METHOD(remoteAddress, remote_addr)
TEXT_METHOD(id, request_id)
TEXT_METHOD(host, server_name)

/* Returns the path of the target as it was sent, without the query. */
static ZEND_METHOD(Samovar_Request, path) {
    ZEND_PARSE_PARAMETERS_NONE();
    HEAD_OR(RETURN_EMPTY_STRING());
    const char *target = samovar_text(r, r->target);
    const char *mark = memchr(target, '?', r->target.len);
    RETURN_STRINGL_FAST(target, mark ? (size_t)(mark - target) : r->target.len);
}

static ZEND_METHOD(Samovar_Request, isSecure) {
    ZEND_PARSE_PARAMETERS_NONE();
    HEAD_OR(RETURN_FALSE);
    RETURN_BOOL(r->flags & SAMOVAR_HTTPS);
}

static const samovar_header *find_header(const samovar_head *r, const zend_string *name) {
    const samovar_header *h = samovar_headers(r);
    for (uint32_t i = 0; i < r->headers; i++, h++) {
        if (h->name.len == ZSTR_LEN(name) &&
            strncasecmp(samovar_text(r, h->name), ZSTR_VAL(name), h->name.len) == 0) {
            return h;
        }
    }
    return NULL;
}

static ZEND_METHOD(Samovar_Request, header) {
    zend_string *name, *otherwise = NULL;
    ZEND_PARSE_PARAMETERS_START(1, 2)
    Z_PARAM_STR(name)
    Z_PARAM_OPTIONAL
    Z_PARAM_STR_OR_NULL(otherwise)
    ZEND_PARSE_PARAMETERS_END();
    const samovar_head *r = head_of(ZEND_THIS);
    const samovar_header *h = r ? find_header(r, name) : NULL;
    if (h) {
        RETURN_STRINGL_FAST(samovar_text(r, h->value), h->value.len);
    }
    if (otherwise) {
        RETURN_STR_COPY(otherwise);
    }
    RETURN_NULL();
}

static ZEND_METHOD(Samovar_Request, headers) {
    ZEND_PARSE_PARAMETERS_NONE();
    array_init(return_value);
    HEAD_OR(return );
    const samovar_header *h = samovar_headers(r);
    for (uint32_t i = 0; i < r->headers; i++, h++) {
        add_assoc_stringl_ex(return_value, samovar_text(r, h->name), h->name.len,
                             (char *)samovar_text(r, h->value), h->value.len);
    }
}

/* Returns the parsed array of a superglobal, so PHP's own parsers and limits apply. */
static void return_track(zval *return_value, zval *object, int track) {
    zval *array = &PG(http_globals)[track];
    if (head_of(object) && Z_TYPE_P(array) == IS_ARRAY) {
        RETURN_COPY(array);
    }
    RETURN_EMPTY_ARRAY();
}

#define TRACK_METHOD(name, track)                                                                  \
    static ZEND_METHOD(Samovar_Request, name) {                                                    \
        ZEND_PARSE_PARAMETERS_NONE();                                                              \
        return_track(return_value, ZEND_THIS, track);                                              \
    }
TRACK_METHOD(query, TRACK_VARS_GET)
TRACK_METHOD(form, TRACK_VARS_POST)
TRACK_METHOD(cookies, TRACK_VARS_COOKIE)
TRACK_METHOD(files, TRACK_VARS_FILES)

static php_stream *open_input(void) {
    return php_stream_open_wrapper("php://input", "rb", REPORT_ERRORS, NULL);
}

static ZEND_METHOD(Samovar_Request, body) {
    ZEND_PARSE_PARAMETERS_NONE();
    HEAD_OR(RETURN_EMPTY_STRING());
    php_stream *input = open_input();
    if (!input) {
        RETURN_EMPTY_STRING();
    }
    zend_string *body = php_stream_copy_to_mem(input, PHP_STREAM_COPY_ALL, 0);
    php_stream_close(input);
    RETURN_STR(body ? body : ZSTR_EMPTY_ALLOC());
}

static ZEND_METHOD(Samovar_Request, bodyStream) {
    ZEND_PARSE_PARAMETERS_NONE();
    HEAD_OR(zend_throw_error(NULL, "The request is over: its body cannot be read any more");
            RETURN_THROWS());
    php_stream *input = open_input();
    if (!input) {
        RETURN_NULL();
    }
    php_stream_to_zval(input, return_value);
}

static zval *attributes_of(zval *object) {
    zval *attributes = &object_of(Z_OBJ_P(object))->attributes;
    if (Z_TYPE_P(attributes) == IS_UNDEF) {
        array_init(attributes);
    }
    return attributes;
}

static ZEND_METHOD(Samovar_Request, attribute) {
    zend_string *name;
    zval *otherwise = NULL;
    ZEND_PARSE_PARAMETERS_START(1, 2)
    Z_PARAM_STR(name)
    Z_PARAM_OPTIONAL
    Z_PARAM_ZVAL(otherwise)
    ZEND_PARSE_PARAMETERS_END();
    zval *found = zend_symtable_find(Z_ARRVAL_P(attributes_of(ZEND_THIS)), name);
    if (found) {
        RETURN_COPY_DEREF(found);
    }
    if (otherwise) {
        RETURN_COPY(otherwise);
    }
    RETURN_NULL();
}

static ZEND_METHOD(Samovar_Request, setAttribute) {
    zend_string *name;
    zval *value;
    ZEND_PARSE_PARAMETERS_START(2, 2)
    Z_PARAM_STR(name)
    Z_PARAM_ZVAL(value)
    ZEND_PARSE_PARAMETERS_END();
    zval *attributes = attributes_of(ZEND_THIS);
    SEPARATE_ARRAY(attributes);
    Z_TRY_ADDREF_P(value);
    zend_symtable_update(Z_ARRVAL_P(attributes), name, value);
}

static ZEND_METHOD(Samovar_Request, attributes) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_COPY(attributes_of(ZEND_THIS));
}

static ZEND_METHOD(Samovar_Request, server) {
    ZEND_PARSE_PARAMETERS_NONE();
    array_init(return_value);
    HEAD_OR(return );
    samovar_register_variables(return_value);
}

static ZEND_METHOD(Samovar_Request, __construct) {
    ZEND_PARSE_PARAMETERS_NONE();
}

void samovar_request_startup(void) {
    zend_class_entry type;
    INIT_NS_CLASS_ENTRY(type, "Samovar", "Request", samovar_methods);
    ce = zend_register_internal_class(&type);
    ce->create_object = create;
    ce->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NO_DYNAMIC_PROPERTIES | ZEND_ACC_NOT_SERIALIZABLE;
    memcpy(&object_handlers, &std_object_handlers, sizeof object_handlers);
    object_handlers.offset = XtOffsetOf(request_object, std);
    object_handlers.free_obj = free_object;
    object_handlers.clone_obj = NULL;
}
