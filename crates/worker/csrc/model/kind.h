/* The kind of a request. Earlier requests of its kind show how much memory it will write. */
#ifndef SAMOVAR_MODEL_KIND_H
#define SAMOVAR_MODEL_KIND_H

#include "ring.h"
#include <stdint.h>

/* Returns the same number for requests with one method and path and the same names in their
 * query. Numbers in the path count as equal. */
uint32_t samovar_request_kind(const samovar_head *r);

#endif
