/* What files, classes and warm-ups take: of a boot, and of a few of the requests below a
 * checkpoint.
 *
 * The hooks are always there, and cost a look at a pointer for each file that is included and each
 * class that is looked for. What they note lies in shared memory: no rollback has to copy it. */
#ifndef SAMOVAR_LOADS_LOADS_H
#define SAMOVAR_LOADS_LOADS_H

#include "boundary.h"
#include <php.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    LOADS_OF_BOOT = 32768,    /* the rest is part of who asked for it */
    LOADS_OF_REQUEST = 2048,  /* likewise */
    LOADS_TEXT_BYTES = 192,   /* of names and places, for each of them on average */
    LOADS_REPORT_BYTES = 384, /* likewise, of what is told */
    LOADS_NAME_BYTES = 1024,  /* of one name; of longer ones the end is kept */
    LOADS_LOOK_MAX = 64,      /* calls that are looked through for one of the application's */
    LOADS_FIRST = 8,          /* requests of a worker that are looked at, */
    LOADS_EVERY = 64,         /* and then one of so many; a power of two */
    LOADS_TELL = 16,          /* of these that load nothing are told together; */
    LOADS_TELL_ON = 1024      /* where the process goes on after a request, so many */
};

#define LOADS_NONE UINT32_MAX

/* Kinds of loads. */
enum {
    LOAD_ROOT = 'b',    /* the boot, or the request: the first one */
    LOAD_FILE = 'f',    /* a file: compiled, and its own code run */
    LOAD_CLASS = 'c',   /* PHP asks the application's autoloaders for a class */
    LOAD_WARMUP = 'w',  /* Samovar\warmup() */
    LOAD_REQUEST = 'r', /* a warm-up request, and what is taken over from it */
    LOAD_LOOK = 'p'     /* the look at what the boot has left open */
};

/* Wall and CPU time, ns, and PHP's memory, bytes. */
typedef struct {
    int64_t wall, cpu, mem;
} load_cost;

typedef struct {
    uint32_t parent;
    uint8_t kind;
    bool was_compiled; /* opcache did not have it */
    bool is_once;      /* by include_once or require_once */
    bool has_ended;
    uint32_t name, name_len, place, place_len, line;
    load_cost begun, compiling, all;
} load;

typedef struct {
    uint32_t loads_max, loads, lost;
    size_t text_room, text_len, report_room, report_len;
    uint64_t boot;  /* of which template it is */
    bool reads_cpu; /* of boots alone: that clock costs more than all the rest */
    load *load;
    char *text, *report;
} load_table;

/* Of a worker that rolls back (persistent.h). */
typedef struct {
    load_table *table;
    uint32_t unchanged; /* requests that were looked at and have loaded nothing, not told yet */
} loads_state;

/* In MINIT: before opcache takes its place in front of PHP's compiler; and when all extensions have
 * started. */
void samovar_loads_minit(void);
void samovar_loads_startup(void);

/* The boot begins; it is over, and is told to the server. */
void samovar_loads_boot(void);
void samovar_loads_booted(void);
/* A worker that will roll back: the room for its requests (NULL: none is wanted), before its
 * mappings are settled, and when it has begun. */
load_table *samovar_loads_room(void);
void samovar_loads_begin(loads_state *state, load_table *table);
/* A request begins, after so many returns to the image; ends (`tell`: so many that have loaded
 * nothing are told together); and has been finished, so that what it takes to tell of it is
 * nobody's. */
void samovar_loads_open(loads_state *state, uint64_t number);
void samovar_loads_close(loads_state *state, uint32_t tell);
void samovar_loads_tell(loads_state *state);

/* Around anything else that is to be told: its number, and its end. */
uint32_t samovar_load_begin(uint8_t kind, const char *name, size_t len);
void samovar_load_end(uint32_t at);

/* Writes it. `head`: of which request; NULL: of the boot. */
void samovar_loads_write(load_table *t, const samovar_head *head, uint32_t looks, uint32_t classes);

#endif
