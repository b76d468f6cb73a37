/* The hooks that see calls, and calls of the code that doubles replace. */
#ifndef SAMOVAR_MOCKS_CALLS_H
#define SAMOVAR_MOCKS_CALLS_H

#include "mocks/doubles.h"

/* Sets the hooks that see calls, and the options of the compiler. */
void samovar_mock_calls_startup(void);
/* Call it after doubles have been added or removed. */
void samovar_mock_calls_changed(void);
void samovar_mock_calls_end(void);

/* Calls a function without its double. */
void samovar_original_call(zend_function *function, zend_object *object, zend_class_entry *called,
                           zval *returned, uint32_t count, zval *arguments, HashTable *named);

#endif
