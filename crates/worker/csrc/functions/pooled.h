/* Whether what lay in a pool still answers. */
#ifndef SAMOVAR_FUNCTIONS_POOLED_H
#define SAMOVAR_FUNCTIONS_POOLED_H

#include <php.h>

/* Asks those that we know, if they were idle long enough to have died. */
bool samovar_pooled_answers(zval *object, uint64_t idle_ns);
/* What a check has said, which is freed: not false. An exception of its own says no; one that
 * ends the task stays. */
bool samovar_pooled_was_good(zval *said);

#endif
