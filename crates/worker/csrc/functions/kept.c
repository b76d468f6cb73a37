/* Samovar\kept(): the application declares that its communication on a connection that was
 * opened above the checkpoint is finished. */
#include "outside/connections.h"
#include "outside/connection_protocols.h"
#include "functions/arginfo/prototypes.h"

static bool is_socket(const zval *value) {
    const zend_class_entry *class = zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("socket"));
    return Z_TYPE_P(value) == IS_OBJECT && class && instanceof_function(Z_OBJCE_P(value), class);
}

/* Returns the descriptor of a stream or a Socket. The struct php_socket of ext/sockets begins
 * with it (ext/sockets/php_sockets.h). */
static int descriptor_of(zval *value) {
    if (Z_TYPE_P(value) == IS_OBJECT) {
        const zend_object *object = Z_OBJ_P(value);
        return *(const int *)((const char *)object - object->handlers->offset);
    }
    return samovar_connections_descriptor(
        zend_fetch_resource2(Z_RES_P(value), NULL, php_file_le_stream(), php_file_le_pstream()));
}

ZEND_FUNCTION(Samovar_kept) {
    zval *stream;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_ZVAL(stream)
    ZEND_PARSE_PARAMETERS_END();
    if (Z_TYPE_P(stream) != IS_RESOURCE && !is_socket(stream)) {
        zend_argument_type_error(1, "must be a stream or a Socket, %s given",
                                 zend_zval_type_name(stream));
        RETURN_THROWS();
    }
    const int fd = descriptor_of(stream);
    if (!samovar_talk_is_kept(fd)) {
        RETURN_FALSE;
    }
    samovar_talk_settle(fd);
    RETURN_TRUE;
}
