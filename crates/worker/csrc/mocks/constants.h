/* Doubles of constants. */
#ifndef SAMOVAR_MOCKS_CONSTANTS_H
#define SAMOVAR_MOCKS_CONSTANTS_H

#include <php.h>
#include <stdbool.h>
#include <stdint.h>

void samovar_mock_constants_startup(void);
/* Gives a constant another value, or defines one. Throws if that is impossible. */
void samovar_constant_replace(zend_string *target, zval *value);
/* Gives constants their values back, those with a higher number than this. */
void samovar_constants_restore_after(uint64_t number);
void samovar_constants_restore_named(const zend_string *target);
void samovar_constants_end(void);

#endif
