/* PHP_SAPI, whose value in console workers is not that of workers for requests. */
#include "sapi/name.h"
#include "compat.h"

/* opcache replaces the name of a persistent constant by its value, in memory that workers and
 * consoles share. A constant that is not persistent is freed by the engine at the end of the
 * request. So this one is persistent only while nothing is compiled. */
static void set_sapi_persistent(bool persistent) {
    zend_constant *sapi = zend_hash_str_find_ptr(EG(zend_constants), ZEND_STRL("PHP_SAPI"));
    if (sapi) {
        const uint32_t flags = ZEND_CONSTANT_FLAGS(sapi);
        const uint32_t wanted = persistent ? flags | CONST_PERSISTENT : flags & ~CONST_PERSISTENT;
        ZEND_CONSTANT_SET_FLAGS(sapi, wanted, ZEND_CONSTANT_MODULE_NUMBER(sapi));
    }
}

void samovar_sapi_name_varies(void) {
    set_sapi_persistent(false);
    zend_function *f = zend_hash_str_find_ptr(CG(function_table), ZEND_STRL("php_sapi_name"));
    if (f) {
        samovar_never_respond_early(f);
    }
}

void samovar_sapi_name_stays(void) {
    set_sapi_persistent(true);
}

void samovar_sapi_rename(const char *name) {
    zend_constant *sapi = zend_hash_str_find_ptr(EG(zend_constants), ZEND_STRL("PHP_SAPI"));
    if (sapi) {
        /* The former value is shared with the template, so it is left alone. */
        ZVAL_NEW_STR(&sapi->value, zend_string_init(name, strlen(name), 1));
    }
}
