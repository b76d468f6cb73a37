/* Hash of a name or text, by which two of them can be compared. */
#ifndef SAMOVAR_OUTSIDE_HASH_H
#define SAMOVAR_OUTSIDE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a: begin with HASH_START, and add each byte. */
#define HASH_START 14695981039346656037ULL

static inline uint64_t samovar_hash_add(uint64_t hash, uint64_t byte) {
    return (hash ^ byte) * 1099511628211ULL;
}

static inline uint64_t samovar_hash(const void *name, size_t len) {
    const uint8_t *at = (const uint8_t *)name;
    uint64_t hash = HASH_START;
    for (size_t i = 0; i < len; i++) {
        hash = samovar_hash_add(hash, at[i]);
    }
    return hash;
}

#endif
