/* The roots of a census: all names by which PHP code reaches what lives longer than a request. */
#ifndef SAMOVAR_CENSUS_ROOTS_H
#define SAMOVAR_CENSUS_ROOTS_H

#include "census/walk.h"

/* What is waiting for requests: its handler and the frames below it. NULL: nothing is. */
typedef struct {
    zval *handler;
    zend_execute_data *frames;
} census_waiting;

/* Names and follows them. */
void samovar_census_roots(census_walk *w, const census_waiting *waiting);
/* Objects that none of them leads to, by class. */
void samovar_census_unreached(census_walk *w);

#endif
