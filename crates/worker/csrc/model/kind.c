/* The kind of a request. */
#include "model/kind.h"
#include "boundary.h"
#include <stdbool.h>

enum { KIND_BYTES_MAX = 1024 }; /* of the target; the rest is ignored */

/* FNV-1a, of 32 bits. */
static const uint32_t SEED = 2166136261u, PRIME = 16777619u;

static uint32_t add(uint32_t hash, char c) {
    return (hash ^ (uint8_t)c) * PRIME;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

uint32_t samovar_request_kind(const samovar_head *r) {
    const char *at = samovar_text(r, r->target);
    const size_t len = r->target.len < KIND_BYTES_MAX ? r->target.len : KIND_BYTES_MAX;
    uint32_t hash = add(SEED, r->method.len > 0 ? *samovar_text(r, r->method) : ' ');
    bool in_query = false, in_value = false, in_number = false;
    for (size_t i = 0; i < len; i++) {
        const char c = at[i];
        in_value = in_query && (in_value ? c != '&' : c == '=');
        const bool digit = !in_query && is_digit(c);
        if (!in_value && !(digit && in_number)) {
            hash = add(hash, digit ? '0' : c);
        }
        in_number = digit;
        in_query |= c == '?';
    }
    return hash;
}
