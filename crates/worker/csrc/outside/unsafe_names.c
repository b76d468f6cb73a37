/* The set is a table with open addressing; 0 marks a free slot. */
#include "outside/unsafe_names.h"

static uint64_t slot_value(uint64_t hash) {
    return hash ? hash : 1;
}

static uint32_t find_slot(const unsafe_names *names, uint64_t value) {
    uint32_t slot = (uint32_t)(value % NAME_SLOTS);
    while (names->slots[slot] != 0 && names->slots[slot] != value) {
        slot = (slot + 1) % NAME_SLOTS;
    }
    return slot;
}

void samovar_names_add(unsafe_names *names, const char *name, size_t len) {
    uint64_t hash = HASH_START;
    for (size_t i = 0; i < len; i++) {
        hash = samovar_name_hash(hash, name[i]);
    }
    const uint32_t slot = find_slot(names, slot_value(hash));
    if (names->slots[slot] != 0) {
        return;
    }
    if (names->count == NAMES_MAX) {
        names->is_full = true;
        return;
    }
    names->slots[slot] = slot_value(hash);
    names->digest ^= slot_value(hash);
    names->count++;
}

bool samovar_names_have(const unsafe_names *names, uint64_t hash) {
    return names->slots[find_slot(names, slot_value(hash))] != 0;
}
