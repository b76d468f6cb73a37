/* A set of names whose use in a statement may change the session of a connection to PostgreSQL
 * or MySQL: functions, tables, views. Upper and lower case are equal. */
#ifndef SAMOVAR_OUTSIDE_UNSAFE_NAMES_H
#define SAMOVAR_OUTSIDE_UNSAFE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NAME_SLOTS = 8192,
    NAMES_MAX = 6144 /* in one set */
};

typedef struct {
    uint32_t count;
    bool is_full; /* a name did not fit */
    uint64_t slots[NAME_SLOTS];
} unsafe_names;

/* Hash of a name. Begin with NAME_HASH_START, and add each byte. */
#define NAME_HASH_START 14695981039346656037ULL

static inline uint64_t samovar_name_hash(uint64_t hash, char c) {
    const uint8_t byte = (uint8_t)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
    return (hash ^ byte) * 1099511628211ULL; /* FNV-1a */
}

void samovar_names_add(unsafe_names *names, const char *name, size_t len);
bool samovar_names_have(const unsafe_names *names, uint64_t hash);

#endif
