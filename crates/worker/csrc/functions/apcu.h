/* The functions and the class of the apcu extension, for applications that keep values by them:
 * setting `compat`. */
#ifndef SAMOVAR_FUNCTIONS_APCU_H
#define SAMOVAR_FUNCTIONS_APCU_H

#include "functions/shared.h"

/* In MINIT; nothing, where it is not asked for, or where the extension itself is loaded. */
void samovar_apcu_startup(void);

/* ---- between its files --------------------------------------------------------------------- */

/* apc.enabled */
extern bool samovar_apcu_is_on;
/* False: it is switched off; or a warning has said what is wrong. */
bool samovar_apcu_cache(uint32_t *cache);
/* Whether there was such a value. */
bool samovar_apcu_delete(zend_string *key);

void samovar_apcu_iterator_startup(void);
bool samovar_apcu_is_iterator(const zval *value);
/* Deletes all that is left to go through. False: there is an exception. */
bool samovar_apcu_delete_all(zval *iterator);

#endif
