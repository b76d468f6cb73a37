/* The line between Rust and PHP. Everything that crosses it is declared here.
 *
 * Rule: a PHP function that can bail out (longjmp) is called only from C, inside a zend_try of this
 * directory; the Rust functions below never call PHP. So no jump ever crosses a Rust frame. */
#ifndef SAMOVAR_BOUNDARY_H
#define SAMOVAR_BOUNDARY_H

#include <stdbool.h>
#include "request.h"

/* ---- Rust calls C -------------------------------------------------------------------------- */

typedef struct {
    const char *ini_file; /* instead of the built-in php.ini; NULL: that one */
    const char
        *ini_entries; /* lines `key=value`, stronger than every file; must outlive the process */
    const char *app_script; /* the front controller, "" for none */
    const char *root;       /* the document root */
    const char
        *checkpoint_after;   /* a file whose first inclusion ends in a checkpoint, "" for none */
    size_t growth_bytes_max; /* of PHP's heap, after which a resident worker rolls back */
    int64_t rollback_every;  /* requests of a FrankenPHP worker script, 0: never */
    bool frankenphp_worker;  /* the front controller is such a script */
    bool log_debug;          /* frankenphp_log() writes messages below the level of information */
} samovar_options;

/* Starts the engine once, in the template. 0, or -1 after PHP has said why. */
int samovar_php_startup(const samovar_options *options);
/* Ends it: for the template's own end only. */
void samovar_php_shutdown(void);
/* PHP_VERSION of the libphp that was loaded, and of the headers this was built with. */
const char *samovar_php_version(void);
const char *samovar_php_built_for(void);

enum {
    SAMOVAR_RUN_DONE = 0,    /* the script ran and ended */
    SAMOVAR_RUN_STOP = 1,    /* it was resident until the server stopped */
    SAMOVAR_RUN_RESTART = 2, /* it was resident until a fatal error: boot it again */
    SAMOVAR_RUN_ENDED = 3    /* it was resident until it ended by itself: a fresh worker goes on */
};

/* Runs the script of the request `head` (script model); stays inside when it becomes resident.
 * The request is finished when this returns. */
int samovar_php_run(const samovar_head *head);
/* Runs the front controller without a request, for its Samovar\serve() or checkpoint() to take
 * some. SAMOVAR_RUN_DONE: it ended without calling either. */
int samovar_php_boot(int place);

/* Runs a script as the command line does, then ends PHP; `words` are the script and its arguments.
 * Once, in a child of the template. Returns the exit status. */
int samovar_php_console(int count, char **words);

/* Where the front controller runs, and so what Samovar\\checkpoint() and serve() mean in it. */
enum {
    SAMOVAR_RUNS_SCRIPTS = 0, /* a worker that runs whole scripts */
    SAMOVAR_BOOTS_IMAGE = 1,  /* the process that the workers are forked from */
    SAMOVAR_BOOTS_WORKER = 2, /* a worker that boots by itself */
    SAMOVAR_REHEARSES = 3,    /* a process that ends where the image would be taken */
    SAMOVAR_RUNS_CONSOLE = 4  /* a console worker: there are no requests */
};
/* Exit status of a worker that is to be replaced at once (life.rs). */
enum { SAMOVAR_EXIT_REPLACE = 83 };

/* ---- C calls Rust -------------------------------------------------------------------------- */

/* Resident model: waits for the next request; NULL when the server stops. */
const samovar_head *samovar_take(void);
/* The application waits for requests in Samovar\serve() or below its checkpoint. */
void samovar_resident(bool rolls_back);
/* Reads the request body; 0 at its end, or when the client has gone. Blocks. */
size_t samovar_read_body(char *to, size_t room);
/* Sets the answer's head: lines "Name: value\n". 0, or -1 when they are too long. */
int samovar_put_head(int status, const char *lines, size_t len);
/* Sends an interim answer (1xx) with such lines ahead of the answer. 0, or -1 when it is too late
 * or too much. */
int samovar_put_interim(int status, const char *lines, size_t len);
/* Appends to the answer's body. 0, or -1 when the client has gone. Blocks on backpressure. */
int samovar_write(const char *bytes, size_t len);
/* Sends what there is. 0, or -1 when the client has gone. */
int samovar_flush(void);
/* The client's answer is complete; the request goes on. */
void samovar_end_answer(void);
/* The client's answer is broken: its connection is cut. */
void samovar_abort_answer(void);
/* 1 when the client has gone. */
int samovar_is_cancelled(void);
/* The request is over; its memory in the slot is the front's again. */
void samovar_finish(size_t peak_bytes);
/* CPU time that this worker's requests have used so far, ns. No system call. */
uint64_t samovar_cpu_ns(void);
/* What the survey of a booted process has found; all texts may be cut. */
void samovar_finding(const char *kind, const char *action, const char *what, const char *where,
                     const char *advice);
/* In the image process: says what kind of image there is. "shared": stays and forks, and returns in
 * each worker. Any other: ends the process. In a worker that boots by itself it only returns. */
void samovar_image_is(const char *mode, size_t bytes, size_t regions);
/* Memory for what a rollback must not bring back (image.c). NULL: none. */
void *samovar_shared_memory(size_t len);
/* A rollback has taken `ns` and copied `pages` pages. */
void samovar_rolled_back(uint64_t ns, size_t pages);
/* A script that runs whole has called checkpoint(): its worker leaves after the request. */
void samovar_met_checkpoint(void);
/* This process is no worker (any more): what it would answer has no reader. */
void samovar_detach(void);
/* Notes why this worker leaves (leave_reason in image.h). */
void samovar_leave(int reason);
/* The next warm-up request, NULL after the last. Valid for the life of the process. */
const samovar_head *samovar_next_warmup(void);
/* 1: this process runs a warm-up request, whose answer nobody reads. */
extern bool samovar_warming;
/* C, called by Rust before a request is taken: 0 when this worker must not take one. */
int samovar_may_take(void);
/* One message for the log, with the id of the request ("" for none). */
void samovar_log(const char *message, size_t len, const char *request_id);
/* The same with a level ("warn") and an object in JSON (len 0: none). */
typedef struct {
    const char *level;
    const char *message;
    size_t message_len;
    const char *context;
    size_t context_len;
    const char *request_id;
} samovar_event;
void samovar_log_event(const samovar_event *event);

#endif
