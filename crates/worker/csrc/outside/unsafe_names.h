/* A set of names whose use in a statement may change the session of a connection to PostgreSQL
 * or MySQL: functions, tables, views. Upper and lower case are equal. */
#ifndef SAMOVAR_OUTSIDE_UNSAFE_NAMES_H
#define SAMOVAR_OUTSIDE_UNSAFE_NAMES_H

#include "outside/hash.h"
#include <stdbool.h>

enum {
    NAME_SLOTS = 8192,
    NAMES_MAX = 6144 /* in one set */
};

typedef struct {
    uint32_t count;
    bool is_full;    /* a name did not fit */
    uint64_t digest; /* equal for equal sets */
    uint64_t slots[NAME_SLOTS];
} unsafe_names;

static inline char samovar_lower(char c) {
    return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

/* Adds a byte of a name to its hash, which begins with HASH_START. */
static inline uint64_t samovar_name_hash(uint64_t hash, char c) {
    return samovar_hash_add(hash, (uint8_t)samovar_lower(c));
}

void samovar_names_add(unsafe_names *names, const char *name, size_t len);
bool samovar_names_have(const unsafe_names *names, uint64_t hash);

#endif
