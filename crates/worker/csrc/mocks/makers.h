/* Doubles of `new`. */
#ifndef SAMOVAR_MOCKS_MAKERS_H
#define SAMOVAR_MOCKS_MAKERS_H

#include "mocks/doubles.h"

void samovar_makers_startup(void);
/* Completes a double of a class. `variadic` is a method of our own that takes any arguments. */
void samovar_maker_prepare(samovar_double *d, const zend_internal_function *variadic);
/* Creates the object that `new` creates without the double. */
void samovar_make_original(const samovar_double *d, zval *made, uint32_t count, zval *arguments,
                           HashTable *named);

#endif
