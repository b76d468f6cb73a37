/* Checks whether an idle object of a pool still works. */
#ifndef SAMOVAR_FUNCTIONS_POOLED_H
#define SAMOVAR_FUNCTIONS_POOLED_H

#include <php.h>

/* Checks objects of known classes, if they were idle long enough to have died. */
bool samovar_pooled_responses(zval *object, uint64_t idle_ns);
/* Returns true unless the result of a check is false, and frees the result. An exception of the
 * check also means false and is cleared; an exception that ends the task stays. */
bool samovar_pooled_was_good(zval *said);

#endif
