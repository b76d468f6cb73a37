/* Memory that a request has mapped beyond the image, and its removal. */
#ifndef SAMOVAR_MEMORY_MAPPINGS_H
#define SAMOVAR_MEMORY_MAPPINGS_H

#include "memory/image.h"
#include "memory/persistent.h"

enum {
    MAPPINGS_MAX = 512, /* made by one request and known by address */
    UNSEEN_MAX = 64     /* ranges where libc has made mappings internally */
};

typedef struct {
    int statm;
    uint64_t vm_pages;               /* of all mappings of the process */
    address_range base[REGIONS_MAX]; /* all mappings when the worker began */
    uint32_t base_count;
    size_t base_bytes;
    /* Made by this request, as far as the interposed functions have reported them. */
    struct {
        char *at;
        size_t len;
    } made[MAPPINGS_MAX];
    uint32_t made_count;
    volatile bool unknown;            /* there are others */
    address_range unseen[UNSEEN_MAX]; /* found by a check of all mappings */
    uint32_t unseen_count, unseen_next;
} mappings_state;

PERSISTENT_STATE(mappings_state, samovar_mappings_state, mappings);

/* Opens the descriptors for a check of all mappings. Returns false if the kernel refuses. */
bool samovar_mappings_open(mappings_state *s);
/* Called when all of the worker's own memory exists: the current mappings stay. */
bool samovar_mappings_settle(mappings_state *s);
/* Unmaps the mappings of this request. `touched`: page faults show that the request may have
 * made the kernel map something; `rollback` is the number of this rollback. Leaves if that is
 * not possible. */
void samovar_mappings_restore(mappings_state *s, bool touched, uint64_t rollback);

/* Called in mmap() and related functions. `len` is rounded up to whole pages. */
void samovar_mappings_made(mappings_state *s, char *at, size_t len);
void samovar_mappings_gone(mappings_state *s, char *at, size_t len);
/* Returns true if there was a mapping when the worker began. */
bool samovar_mappings_had(const mappings_state *s, const void *at, size_t len);

#endif
