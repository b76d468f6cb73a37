/* Hash of a name or text, by which two of them can be compared. */
#ifndef SAMOVAR_OUTSIDE_HASH_H
#define SAMOVAR_OUTSIDE_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t samovar_hash(const void *name, size_t len) {
    const uint8_t *at = (const uint8_t *)name;
    uint64_t hash = 14695981039346656037ULL; /* FNV-1a */
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ at[i]) * 1099511628211ULL;
    }
    return hash;
}

#endif
