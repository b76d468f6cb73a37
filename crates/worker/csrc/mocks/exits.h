/* Doubles of exit(), which is no function before PHP 8.4. */
#ifndef SAMOVAR_MOCKS_EXITS_H
#define SAMOVAR_MOCKS_EXITS_H

#include <php.h>

void samovar_exits_startup(void);
/* Returns a function in place of exit(); NULL: PHP has one. `variadic` is a method of our own
 * that takes any arguments. */
zend_function *samovar_exit_function(const zend_internal_function *variadic);

#endif
