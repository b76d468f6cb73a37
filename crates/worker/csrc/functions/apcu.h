/* The functions and the class of the apcu extension, for applications that use it to store
 * values: setting `compat`. */
#ifndef SAMOVAR_FUNCTIONS_APCU_H
#define SAMOVAR_FUNCTIONS_APCU_H

#include "functions/shared.h"

/* Called in MINIT. Does nothing if the functions are disabled, or if the extension itself is
 * loaded. */
void samovar_apcu_startup(void);

/* ---- between the files of apcu ------------------------------------------------------------- */

/* apc.enabled */
extern bool samovar_apcu_is_on;
/* Returns false if the cache is disabled, or after a warning about an error. */
bool samovar_apcu_cache(uint32_t *cache);
/* Returns true if there was such a value. */
bool samovar_apcu_delete(zend_string *key);

void samovar_apcu_iterator_startup(void);
bool samovar_apcu_is_iterator(const zval *value);
/* Deletes all values that the iterator has not passed yet. Returns false if there is an
 * exception. */
bool samovar_apcu_delete_all(zval *iterator);

#endif
