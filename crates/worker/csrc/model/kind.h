/* What kind of request it is: how much it will write, others of its kind have shown. */
#ifndef SAMOVAR_MODEL_KIND_H
#define SAMOVAR_MODEL_KIND_H

#include "ring.h"
#include <stdint.h>

/* The same number for those of one method and path with the same names in their query; numbers in
 * the path count as one. */
uint32_t samovar_request_kind(const samovar_head *r);

#endif
