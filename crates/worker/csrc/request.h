/* Reads a request's head, as the front wrote it into the slot (crates/ring/src/request.rs).
 *
 * Strings are offsets from the start of the struct; each is followed by a NUL. The memory is
 * valid and unchanged until samovar_finish(). */
#ifndef SAMOVAR_REQUEST_H
#define SAMOVAR_REQUEST_H

#include <stddef.h>
#include "ring.h"

static inline const char *samovar_text(const samovar_head *r, samovar_str s) {
    return (const char *)r + s.off;
}

/* Returns NULL if the string is absent. */
static inline const char *samovar_optional(const samovar_head *r, samovar_str s) {
    return s.off ? (const char *)r + s.off : NULL;
}

static inline const samovar_header *samovar_headers(const samovar_head *r) {
    return (const samovar_header *)((const char *)r + r->headers_off);
}

#endif
