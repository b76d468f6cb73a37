/* Samovar\Channel: passes values from one task to another. Senders wait for notifications about
 * `received`, receivers for notifications about `sent`. */
#include "functions/tasks.h"
#include <zend_exceptions.h>
#include "functions/arginfo/channel.h"

enum { CAPACITY_MAX = 1000000 };

typedef struct {
    zend_long capacity;
    bool is_closed;
    uint32_t receivers; /* that wait */
    uint64_t sent, received;
    HashTable values; /* by the sequence number of the send */
    zend_object std;
} channel;

static zend_object_handlers object_handlers;

static channel *of_object(zend_object *object) {
    return (channel *)((char *)object - XtOffsetOf(channel, std));
}

static zend_object *create(zend_class_entry *type) {
    channel *c = zend_object_alloc(sizeof *c, type);
    memset(c, 0, XtOffsetOf(channel, std));
    zend_hash_init(&c->values, 0, NULL, ZVAL_PTR_DTOR, 0);
    zend_object_std_init(&c->std, type);
    object_properties_init(&c->std, type);
    c->std.handlers = &object_handlers;
    return &c->std;
}

static void free_object(zend_object *object) {
    zend_hash_destroy(&of_object(object)->values);
    zend_object_std_dtor(object);
}

/* ---- methods ------------------------------------------------------------------------------- */

static ZEND_METHOD(Samovar_Channel, __construct) {
    zend_long capacity = 0;
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_LONG(capacity)
    ZEND_PARSE_PARAMETERS_END();
    if (capacity < 0 || capacity > CAPACITY_MAX) {
        zend_argument_value_error(1, "must be between 0 and %d", CAPACITY_MAX);
        RETURN_THROWS();
    }
    of_object(Z_OBJ_P(ZEND_THIS))->capacity = capacity;
}

static bool refuse_closed(const channel *c) {
    if (c->is_closed) {
        zend_throw_error(NULL, "The channel is closed: nothing can be sent");
    }
    return c->is_closed;
}

/* Returns true if a value can be sent. In a channel without capacity, each waiting receiver is
 * room for one value. */
static bool has_room(const channel *c) {
    const uint64_t waiting = zend_hash_num_elements(&c->values);
    return waiting < (uint64_t)c->capacity + (c->capacity ? 0 : c->receivers);
}

static bool wait_for_room(channel *c, uint64_t deadline_ns) {
    while (!refuse_closed(c)) {
        if (has_room(c)) {
            return true;
        }
        if (!samovar_wait_for_word(&c->received, deadline_ns,
                                   "Timed out: no task received the value")) {
            return false;
        }
    }
    return false;
}

static ZEND_METHOD(Samovar_Channel, send) {
    zval *value;
    double seconds = 0;
    bool is_endless = true;
    ZEND_PARSE_PARAMETERS_START(1, 2)
    Z_PARAM_ZVAL(value)
    Z_PARAM_OPTIONAL
    Z_PARAM_DOUBLE_OR_NULL(seconds, is_endless)
    ZEND_PARSE_PARAMETERS_END();
    if (Z_TYPE_P(value) == IS_NULL) {
        zend_argument_value_error(1, "cannot be null: receive() returns null for a closed channel");
        RETURN_THROWS();
    }
    if (!is_endless && !samovar_seconds_are_valid(2, seconds)) {
        RETURN_THROWS();
    }
    channel *c = of_object(Z_OBJ_P(ZEND_THIS));
    if (!wait_for_room(c, samovar_deadline(!is_endless, seconds))) {
        RETURN_THROWS();
    }
    Z_TRY_ADDREF_P(value);
    zend_hash_index_add_new(&c->values, c->sent++, value);
    samovar_task_tell(&c->sent);
}

static bool take(channel *c, zval *to) {
    zval *value = zend_hash_index_find(&c->values, c->received);
    if (!value) {
        return false;
    }
    ZVAL_COPY(to, value);
    zend_hash_index_del(&c->values, c->received++);
    if (zend_hash_num_elements(&c->values) == 0) {
        zend_hash_clean(&c->values); /* Otherwise the table grows with each value. */
    }
    samovar_task_tell(&c->received);
    return true;
}

static ZEND_METHOD(Samovar_Channel, receive) {
    double seconds = 0;
    bool is_endless = true;
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_DOUBLE_OR_NULL(seconds, is_endless)
    ZEND_PARSE_PARAMETERS_END();
    if (!is_endless && !samovar_seconds_are_valid(1, seconds)) {
        RETURN_THROWS();
    }
    channel *c = of_object(Z_OBJ_P(ZEND_THIS));
    const uint64_t deadline = samovar_deadline(!is_endless, seconds);
    while (!take(c, return_value)) {
        if (c->is_closed) {
            RETURN_NULL();
        }
        c->receivers++;
        samovar_task_tell(&c->received);
        const bool told =
            samovar_wait_for_word(&c->sent, deadline, "Timed out: no task sent a value");
        c->receivers--;
        if (!told) {
            RETURN_THROWS();
        }
    }
}

static ZEND_METHOD(Samovar_Channel, close) {
    ZEND_PARSE_PARAMETERS_NONE();
    channel *c = of_object(Z_OBJ_P(ZEND_THIS));
    c->is_closed = true;
    samovar_task_tell(&c->sent);
    samovar_task_tell(&c->received);
}

void samovar_channel_startup(void) {
    zend_class_entry type;
    INIT_NS_CLASS_ENTRY(type, "Samovar", "Channel", samovar_methods);
    zend_class_entry *ce = zend_register_internal_class(&type);
    ce->create_object = create;
    ce->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NO_DYNAMIC_PROPERTIES | ZEND_ACC_NOT_SERIALIZABLE;
    memcpy(&object_handlers, &std_object_handlers, sizeof object_handlers);
    object_handlers.offset = XtOffsetOf(channel, std);
    object_handlers.free_obj = free_object;
    object_handlers.clone_obj = NULL;
}
