/* Sessions of a booted application's requests: the calls of the session extension, and the
 * handlers of session_set_save_handler() from the boot. */
#include "model/session.h"
#include "compat.h"

static zend_module_entry *extension;
static struct {
    zval handlers[SESSION_HANDLERS];
    zend_string *handler_class;
} of_boot;

void samovar_session_startup(void) {
    extension = zend_hash_str_find_ptr(&module_registry, "session", sizeof("session") - 1);
}

bool samovar_has_sessions(void) {
    return extension != NULL;
}

void samovar_session_begin(void) {
    if (extension && extension->request_startup_func) {
        extension->request_startup_func(extension->type, extension->module_number);
    }
}

static void restore_handlers(void) {
    for (int i = 0; i < SESSION_HANDLERS; i++) {
        ZVAL_COPY(SAMOVAR_SESSION_HANDLER(i), &of_boot.handlers[i]);
    }
    if (of_boot.handler_class && !PS(mod_user_class_name)) {
        PS(mod_user_class_name) = zend_string_copy(of_boot.handler_class);
    }
}

void samovar_session_end(void) {
    if (!extension) {
        return;
    }
    if (extension->request_shutdown_func) {
        extension->request_shutdown_func(extension->type, extension->module_number);
    }
    restore_handlers();
    zend_hash_str_del(&EG(symbol_table), "_SESSION", sizeof("_SESSION") - 1);
}

void samovar_session_save_handlers(void) {
    of_boot.handler_class = NULL;
    for (int i = 0; i < SESSION_HANDLERS; i++) {
        ZVAL_UNDEF(&of_boot.handlers[i]);
    }
    if (!extension) {
        return;
    }
    for (int i = 0; i < SESSION_HANDLERS; i++) {
        ZVAL_COPY(&of_boot.handlers[i], SAMOVAR_SESSION_HANDLER(i));
    }
    if (PS(mod_user_class_name)) {
        of_boot.handler_class = zend_string_copy(PS(mod_user_class_name));
    }
}

void samovar_session_drop_handlers(void) {
    for (int i = 0; i < SESSION_HANDLERS; i++) {
        zval_ptr_dtor(&of_boot.handlers[i]);
    }
    if (of_boot.handler_class) {
        zend_string_release(of_boot.handler_class);
    }
}
