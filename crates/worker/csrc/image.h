/* Checkpoint and rollback: the memory image of a booted process, and what a worker needs to return
 * to it. Private to image.c, hot.c, heap.c, kernel.c, survey.c, rollback.c and interpose.c.
 *
 * Three kinds of memory:
 * - the image: every private writable mapping of the process, copied into a memory file once and
 *   mapped back from it, so that all forks share it; rolled back after a request;
 * - what survives a rollback: `survivors`, one MAP_SHARED mapping per worker, made after the fork;
 * - the rest: read-only mappings, and MAP_SHARED ones (the ring, opcache), which nobody rolls back.
 */
#ifndef SAMOVAR_IMAGE_H
#define SAMOVAR_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <ucontext.h>
#include "boundary.h"

enum {
    IMAGE_PAGE = 4096,
    REGIONS_MAX = 4096,
    CLUSTERS_MAX = 128,
    DESCRIPTORS_MAX = 1024, /* open when the image is taken */
    KEPT_MAX = 64,          /* connections and files that an image keeps open */
    MAPPINGS_MAX = 512,     /* made by one request and known by their addresses */
    CHUNKS_MAX = 64,        /* of the Zend heap, kept for the next request */
    FINDINGS_MAX = 32,
    RANGES_MAX = 8192
};

typedef struct {
    char *at;
    size_t len;
    size_t offset; /* in the memory file */
    int prot;
} image_region;

/* Regions near each other, looked through in one go. */
typedef struct {
    uintptr_t from, to;
} address_range;

/* Written once, when the image is taken; shared by all its workers. */
typedef struct {
    image_region regions[REGIONS_MAX];
    uint32_t region_count;
    address_range clusters[CLUSTERS_MAX];
    uint32_t cluster_count;
    size_t bytes;      /* of the memory file; a hole counts */
    size_t held_bytes; /* of it without the holes */
    const char *view;  /* the memory file, read-only */
    uintptr_t stack_top;
    void *brk;
} image_table;

/* NULL until there is an image. */
extern image_table *samovar_image;

/* A page that is copied back after each request. */
typedef struct {
    char *page;
    uint32_t number;    /* in the image */
    uint32_t unchanged; /* how often in a row the sample found it so */
} hot_page;

/* A descriptor of the image that a request may use, and what is put back after it. */
typedef struct {
    int fd;
    int flags;
    off_t offset; /* of a file or folder, else -1 */
    bool connection;
    /* The boot's own locks on it, bytes [from, to]: the request's lie outside. None: from > to. */
    off_t locked_from, locked_to;
    /* A connection: this request has talked on it; it has asked and not been answered yet. */
    bool used, asked;
} kept_descriptor;

/* Why a worker cannot go on after this request. The order is that of `LeaveReason` in the ring. */
typedef enum {
    LEAVE_NOT = 0,
    LEAVE_CHILD,
    LEAVE_THREAD,
    LEAVE_DESCRIPTOR,
    LEAVE_CONNECTION,
    LEAVE_MAPPING,
    LEAVE_PRIVILEGES,
    LEAVE_CHECKPOINT, /* a script-model worker met checkpoint(): its successor boots ahead */
    LEAVE_FATAL,
    LEAVE_LOCK,
    LEAVE_TIMER,
    LEAVE_END /* its loop over frankenphp_handle_request() has ended (life.rs says so) */
} leave_reason;

/* The time limit's timer, as activate.c has set it. */
typedef struct {
    bool known; /* Nobody else has touched it since. */
    int64_t seconds;
    uint64_t at_ns; /* samovar_cpu_ns() when it was set. */
} time_limit_state;

/* All that lives through a rollback. One per worker, in MAP_SHARED memory. */
typedef struct {
    ucontext_t resume, restore;
    char *stack_low;
    char *stack_copy;
    size_t stack_len, stack_room;
    /* hot.c */
    hot_page *hot;
    uint32_t hot_count, hot_room;
    uint8_t *pages;        /* by page of the image: what is known of it (hot.c) */
    const char **sources;  /* by page of the image: its content, here or in the worker's own part */
    address_range *ranges; /* a scan's result */
    uint32_t range_count;
    const char *baseline; /* the worker's own part */
    long faults;
    int pagemap;
    bool has_pagemap_scan;
    /* kernel.c */
    unsigned first_free; /* descriptor number: the request's begin here */
    uint64_t descriptors[DESCRIPTORS_MAX / 64];
    kept_descriptor kept[KEPT_MAX];
    uint32_t kept_count;
    int cwd, statm;
    mode_t umask;
    uint64_t vm_pages;
    address_range base[REGIONS_MAX]; /* all mappings when the worker began */
    uint32_t base_count;
    size_t base_bytes;
    struct {
        char *at;
        size_t len;
    } mappings[MAPPINGS_MAX];
    uint32_t mapping_count;
    struct {
        char *at;
        bool used;
    } chunks[CHUNKS_MAX];
    uint32_t chunk_count, chunks_used;
    /* What the interposed functions of libc have seen since the last rollback. */
    volatile bool unknown_mappings, cwd_changed, umask_changed, signals_changed, timers_changed,
        mask_changed;
    volatile bool threads_started;
    volatile int semaphores; /* what the request has added to System V semaphores, in all */
    bool has_children;       /* of the boot: no request can be told by its own */
    bool unclean;            /* the request ended in a fatal error */
    volatile leave_reason leave;
    /* rollback.c */
    uint64_t rollbacks, rollback_ns;
    /* reseed.c */
    uint8_t entropy[4096];
    size_t entropy_left;
    /* activate.c */
    time_limit_state timer;
} image_survivors;

/* NULL until this process is a worker that rolls back. */
extern image_survivors *samovar_survivors;

/* image.c */
/* Takes the image. NULL, or what went wrong. */
const char *samovar_image_take(void);
/* Runs the job on a stack that is no part of the image, all signals blocked; false: no memory. */
typedef void samovar_job(void *argument);
bool samovar_run_aside(samovar_job *run, void *argument);
/* A memory file whose pages may be mapped executable; -1: none. */
int samovar_memory_file(void);
bool samovar_write_all(int file, const char *from, size_t len, off_t offset);

/* heap.c: the free pages of the Zend heap */
void samovar_heap_learn(void);
/* From now on requests use free pages, and not the gaps in used ones. */
void samovar_heap_close(void);
void samovar_heap_for_each_free(void visit(image_survivors *, char *, const char *),
                                image_survivors *s);

/* hot.c: which pages a request has changed, and their way back */
bool samovar_hot_start(image_survivors *s);
/* Whether pages may have been written that are not known to be hot. */
bool samovar_hot_touched(const image_survivors *s);
void samovar_hot_restore(image_survivors *s, bool touched);

enum { SAMOVAR_CHUNK_BYTES = 2 << 20 }; /* of the Zend heap (Zend/zend_alloc.c) */

/* kernel.c: what the kernel knows of the process, and its way back */
bool samovar_kernel_start(image_survivors *s);
bool samovar_kernel_settle(image_survivors *s);
void samovar_kernel_restore(image_survivors *s, bool touched);
/* Whether a request can be taken: false when a kept connection has died. */
bool samovar_kernel_connections_live(image_survivors *s);

/* rollback.c */
/* Becomes the point that each rollback returns to; false: this process cannot roll back (said). */
bool samovar_rollback_here(void);
_Noreturn void samovar_roll_back(void);
/* In every child of fork(): that a request has forked is no worker. */
void samovar_forked(void);
/* Ends this worker; the supervisor replaces it at once. */
_Noreturn void samovar_leave_for(leave_reason reason);

/* reseed.c */
void samovar_reseed_startup(void);
void samovar_reseed_warm_up(void);
void samovar_reseed_prepare(void);
void samovar_reseed(void);
long samovar_live_tls(void);

/* survey.c */
enum { FALL_SHARED = 0, FALL_WORKER = 1, FALL_SCRIPT = 2 };
/* Before the boot: what is open already is the server's own. */
void samovar_survey_begin(void);
/* After it: reports each finding, and says which fall-back they ask for. Once. */
int samovar_survey(void);
/* The descriptors that boot opened, to `kept`. */
void samovar_survey_kept(image_survivors *s);
/* Remembers which line of PHP has opened `fd`, or starts what has no descriptor. Only while
 * booting. */
/* Not -1, which is no descriptor at all. */
enum { SURVEY_THREAD = -2, SURVEY_CHILD = -3, SURVEY_TIMER = -4 };
void samovar_survey_note(int fd);
void samovar_survey_note_child(void);

#endif
