/* The request head as the front wrote it into the slot: mirrors crates/ring/src/request.rs.
 *
 * Strings are offsets from the start of the struct; each is followed by a NUL. Offset 0 means
 * absent. The memory is valid, and does not change, until samovar_finish(). */
#ifndef SAMOVAR_REQUEST_H
#define SAMOVAR_REQUEST_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t off, len;
} samovar_str;

typedef struct {
    samovar_str name, value;
} samovar_header;

enum { SAMOVAR_HTTPS = 1, SAMOVAR_APP = 2 };

typedef struct {
    samovar_str method, target, query, protocol;
    samovar_str script_filename, script_name, document_uri, path_info, document_root;
    samovar_str server_name, server_addr, remote_addr, request_id;
    samovar_str content_type, cookie, authorization;
    int64_t content_length; /* -1: none */
    uint32_t server_port, remote_port;
    uint32_t flags;
    uint32_t headers, headers_off;
    uint32_t pad;
} samovar_head;

_Static_assert(sizeof(samovar_header) == 16, "Header of request.rs");
_Static_assert(sizeof(samovar_head) == 16 * 8 + 8 + 6 * 4, "Head of request.rs");

static inline const char *samovar_text(const samovar_head *r, samovar_str s) {
    return (const char *)r + s.off;
}

/* NULL where the string is absent. */
static inline const char *samovar_optional(const samovar_head *r, samovar_str s) {
    return s.off ? (const char *)r + s.off : NULL;
}

static inline const samovar_header *samovar_headers(const samovar_head *r) {
    return (const samovar_header *)((const char *)r + r->headers_off);
}

#endif
