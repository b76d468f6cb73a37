/* Functions, classes and methods by name. They return NULL and throw if there is none that can be
 * replaced. */
#ifndef SAMOVAR_MOCKS_LOOKUP_H
#define SAMOVAR_MOCKS_LOOKUP_H

#include <php.h>
#include <stdbool.h>

/* `variadic` is a method of our own that takes any arguments. */
zend_function *samovar_mock_function(zend_string *name, const zend_internal_function *variadic);
zend_class_entry *samovar_mock_class(zend_string *name);
zend_function *samovar_mock_method(zend_class_entry *ce, zend_string *name);
/* Returns true for functions that read or write variables of their caller. */
bool samovar_mock_depends_on_caller(const zend_string *name);

#endif
