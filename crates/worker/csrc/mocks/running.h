/* Calls of doubles. */
#ifndef SAMOVAR_MOCKS_RUNNING_H
#define SAMOVAR_MOCKS_RUNNING_H

#include "mocks/doubles.h"

/* Returns the class of `$this` or of `static` in a frame; NULL: there is none. */
zend_class_entry *samovar_called_class(const zend_execute_data *frame);

/* Calls the double with the arguments of a frame. `returned` is undefined after an exception. */
void samovar_double_run(samovar_double *d, zend_execute_data *frame, zval *returned);

/* Returns the frame of the innermost running double, and sets `d`. NULL: none runs. */
zend_execute_data *samovar_double_running(samovar_double **d);

void samovar_running_end(void);

#endif
