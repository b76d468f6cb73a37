/* Functions for all classes of shared objects. */
#include "functions/shared.h"
#include <zend_exceptions.h>
#include <ext/spl/spl_exceptions.h>

void samovar_throw_problem(void) {
    const samovar_problem *problem = samovar_shared_problem();
    if (!problem || !problem->text) {
        zend_throw_error(NULL, "There is no shared memory in this process");
        return;
    }
    zend_class_entry *thrown = problem->thrown == SAMOVAR_THROWS_VALUE_ERROR ? zend_ce_value_error
                               : problem->thrown == SAMOVAR_THROWS_RUNTIME ? spl_ce_RuntimeException
                                                                           : zend_ce_error;
    zend_throw_exception(thrown, problem->text, 0);
}

zend_class_entry *samovar_shared_class(const char *name, const zend_function_entry *methods,
                                       zend_object_handlers *handlers, int offset) {
    zend_class_entry type;
    INIT_CLASS_ENTRY_EX(type, name, strlen(name), methods);
    zend_class_entry *ce = zend_register_internal_class(&type);
    ce->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NO_DYNAMIC_PROPERTIES | ZEND_ACC_NOT_SERIALIZABLE;
    memcpy(handlers, &std_object_handlers, sizeof *handlers);
    handlers->offset = offset;
    handlers->clone_obj = NULL;
    return ce;
}
