/* The image: the memory of a booted process, from which its workers start and to which they
 * return.
 *
 * There are three kinds of memory:
 * - the image: every private writable mapping of the process. It is copied into a memory file
 *   once and mapped back from it, so that all forks share it. It is rolled back after a request.
 * - memory that survives a rollback: MAP_SHARED memory of a worker's own (memory/persistent.h).
 * - the rest: read-only mappings, and MAP_SHARED ones (the ring, opcache), which are not rolled
 *   back.
 *
 * This folder is the lowest: it handles memory and nothing else. It includes only leave.h and
 * boundary.h. */
#ifndef SAMOVAR_MEMORY_IMAGE_H
#define SAMOVAR_MEMORY_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    IMAGE_PAGE = 4096,
    REGIONS_MAX = 4096,
    CLUSTERS_MAX = 512,
    SAMOVAR_CHUNK_BYTES = 2 << 20 /* of the Zend heap (Zend/zend_alloc.c) */
};

typedef struct {
    char *at;
    size_t len;
    size_t offset; /* in the memory file */
    int prot;
} image_region;

typedef struct {
    uintptr_t from, to;
} address_range;

/* Regions near each other, which are searched together. */
typedef struct {
    address_range range;
    uint32_t first, end; /* its regions */
} region_cluster;

/* Written once, when the image is taken; shared by all its workers. */
typedef struct {
    image_region regions[REGIONS_MAX];
    uint32_t region_count;
    region_cluster clusters[CLUSTERS_MAX];
    uint32_t cluster_count;
    size_t bytes;      /* of the memory file, including holes */
    size_t held_bytes; /* the same without holes */
    const char *view;  /* the memory file, read-only */
    uintptr_t stack_top;
    void *brk;
} image_table;

/* NULL until there is an image. */
extern image_table *samovar_image;

/* Takes the image. Returns NULL, or the error. */
const char *samovar_image_take(void);
/* Returns true if a byte of [at, at + len) belongs to the image. */
bool samovar_image_has(const char *at, size_t len);
/* Returns the region that contains this byte, or NULL. */
const image_region *samovar_region_of(const char *at);

/* Runs the job on a stack outside of the image, with all signals blocked. Returns false if there
 * is no memory. */
typedef void samovar_job(void *argument);
bool samovar_run_aside(samovar_job *run, void *argument);

/* Creates a memory file whose pages may be mapped executable. Returns -1 on failure. */
int samovar_memory_file(void);
bool samovar_write_all(int file, const char *from, size_t len, off_t offset);

#endif
