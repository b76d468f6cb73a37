/* Memory that a request has mapped and the image does not know: its way out. */
#ifndef SAMOVAR_MEMORY_MAPPINGS_H
#define SAMOVAR_MEMORY_MAPPINGS_H

#include "memory/image.h"

enum {
    MAPPINGS_MAX = 512, /* made by one request and known by their addresses */
    UNSEEN_MAX = 64     /* places where libc has mapped something by itself */
};

typedef struct {
    int statm;
    uint64_t vm_pages;               /* of the process, all mappings together */
    address_range base[REGIONS_MAX]; /* all mappings when the worker began */
    uint32_t base_count;
    size_t base_bytes;
    /* Made by this request, as far as the interposed functions have seen. */
    struct {
        char *at;
        size_t len;
    } made[MAPPINGS_MAX];
    uint32_t made_count;
    volatile bool unknown;            /* There are others. */
    address_range unseen[UNSEEN_MAX]; /* found by a look at all mappings */
    uint32_t unseen_count, unseen_next;
} mappings_state;

/* Opens what the look at all mappings needs; false: the kernel does not give it. */
bool samovar_mappings_open(mappings_state *s);
/* When all of the worker's own memory is there: what is mapped now stays. */
bool samovar_mappings_settle(mappings_state *s);
/* Unmaps what this request has mapped. `touched`: it has made the kernel map something, as far as
 * page faults tell; `rollback` is the number of this one. Leaves when that is not possible. */
void samovar_mappings_restore(mappings_state *s, bool touched, uint64_t rollback);

/* In mmap() and its like: bytes, rounded up to whole pages. */
void samovar_mappings_made(mappings_state *s, char *at, size_t len);
void samovar_mappings_gone(mappings_state *s, char *at, size_t len);
/* Whether something was mapped there when the worker began. */
bool samovar_mappings_had(const mappings_state *s, const void *at, size_t len);

#endif
