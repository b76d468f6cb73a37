/* Calls of doubles and of the code that they replace. */
#ifndef SAMOVAR_MOCKS_CALLS_H
#define SAMOVAR_MOCKS_CALLS_H

#include "mocks/doubles.h"

/* Sets the hooks that see calls, and the options of the compiler. */
void samovar_mock_calls_startup(void);
/* Call it after doubles have been added or removed. */
void samovar_mock_calls_changed(void);
void samovar_mock_calls_end(void);

/* Calls the double with the arguments of a frame. `returned` is undefined after an exception. */
void samovar_double_run(samovar_double *d, zend_execute_data *frame, zval *returned);

/* Returns the frame of the innermost running double, and sets `d`. NULL: none runs. */
zend_execute_data *samovar_double_running(samovar_double **d);

/* Calls a function without its double. */
void samovar_original_call(zend_function *function, zend_object *object, zend_class_entry *called,
                           zval *returned, uint32_t count, zval *arguments, HashTable *named);

/* Returns the class of `$this` or of `static` in a frame; NULL: there is none. */
zend_class_entry *samovar_called_class(const zend_execute_data *frame);

#endif
