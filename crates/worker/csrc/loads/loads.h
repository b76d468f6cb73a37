/* Cost of files, classes and warm-ups: of a boot, of a few of the requests below a checkpoint, and
 * of fewer of the requests that run whole scripts.
 *
 * The hooks are always installed. They cost the check of a pointer for each included file and
 * each class lookup. Their records are in shared memory, so no rollback has to copy them. */
#ifndef SAMOVAR_LOADS_LOADS_H
#define SAMOVAR_LOADS_LOADS_H

#include "boundary.h"
#include "memory/persistent.h"
#include <php.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    LOADS_OF_BOOT = 32768,    /* further loads are part of their parents */
    LOADS_OF_REQUEST = 2048,  /* the same */
    LOADS_OF_SCRIPT = 8192,   /* the same */
    LOADS_FIRST_SCRIPTS = 2,  /* whole scripts of a worker that are recorded first */
    LOADS_TEXT_BYTES = 192,   /* of names and places, average per load */
    LOADS_REPORT_BYTES = 384, /* of the report, average per load */
    LOADS_NAME_BYTES = 1024,  /* of one name; longer ones are cut at the start */
    LOADS_LOOK_MAX = 64,      /* calls that are searched for one of the application */
    LOADS_FIRST = 8,          /* requests of a worker that are recorded first, */
    LOADS_EVERY = 64,         /* and then one out of this number; a power of two */
    LOADS_TELL = 16,          /* recorded requests without loads, reported together; */
    LOADS_TELL_ON = 1024      /* the same where the process continues after a request */
};

#define LOADS_NONE UINT32_MAX

/* Kinds of loads. */
enum {
    LOAD_ROOT = 'b',    /* the first load: the boot, or the request */
    LOAD_FILE = 'f',    /* a file: compiled, and its own code run */
    LOAD_CLASS = 'c',   /* PHP calls the application's autoloaders for a class */
    LOAD_WARMUP = 'w',  /* Samovar\warmup() */
    LOAD_REQUEST = 'r', /* a warm-up request, and the state taken over from it */
    LOAD_LOOK = 'p'     /* the check of objects that the boot has left open */
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
    uint64_t boot;  /* number of its template */
    bool is_script; /* of a request that runs a whole script */
    bool reads_cpu; /* only for boots: that clock costs more than all the rest */
    load *load;
    char *text, *report;
} load_table;

/* State of a worker that rolls back. */
typedef struct {
    load_table *table;
    uint32_t unchanged; /* recorded requests without loads that were not reported yet */
} loads_state;

PERSISTENT_STATE(loads_state, samovar_loads_state, loads);

/* Called in MINIT, before opcache installs its hook in front of PHP's compiler; and when all
 * extensions have started. */
void samovar_loads_minit(void);
void samovar_loads_startup(void);

/* Called when the boot begins, and when it is over: sends the report to the server. */
void samovar_loads_boot(void);
void samovar_loads_booted(void);
/* For a worker that will roll back: allocates the memory for its requests before its mappings
 * are settled (NULL: none is wanted), and sets it when the worker has begun. */
load_table *samovar_loads_room(void);
void samovar_loads_begin(loads_state *state, load_table *table);
/* Called in this order:
 *
 * - when a request begins, after `number` returns to the image;
 * - when it ends; `tell` requests without loads are reported together;
 * - when it has been finished, so that the cost of sending the report is charged to no request. */
void samovar_loads_open(loads_state *state, uint64_t number);
void samovar_loads_close(loads_state *state, uint32_t tell);
void samovar_loads_tell(loads_state *state);

/* For a worker that runs whole scripts: called when a request begins, when it ends but is not yet
 * finished, and when it has been finished. Records the first requests, and then one out of
 * `loads_every`. */
void samovar_loads_script_open(void);
void samovar_loads_script_close(const samovar_head *head);
void samovar_loads_script_tell(void);

/* Around any other load to record: returns its number, and ends it. */
uint32_t samovar_load_begin(uint8_t kind, const char *name, size_t len);
void samovar_load_end(uint32_t at);

/* Writes the report of the request `head`. NULL: of the boot. */
void samovar_loads_write(load_table *t, const samovar_head *head, uint32_t looks, uint32_t classes);

#endif
