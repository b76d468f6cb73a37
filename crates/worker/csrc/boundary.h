/* The line between Rust and PHP. Everything that crosses it is declared here.
 *
 * Rule: a PHP function that can bail out (longjmp) is called only from C, inside a zend_try of this
 * directory; the Rust functions below never call PHP. So no jump ever crosses a Rust frame. */
#ifndef SAMOVAR_BOUNDARY_H
#define SAMOVAR_BOUNDARY_H

#include <stdbool.h>
#include "from_rust.h"
#include "request.h"

/* Of what each request writes: side by side, for a rollback copies back whole pages. */
#define SAMOVAR_OF_REQUEST __attribute__((section("samovar_of_request")))

/* ---- Rust calls C -------------------------------------------------------------------------- */

/* The settings: `samovar_options` of from_rust.h, which build.rs writes from src/php_options.in.rs.
 * What it points to lives as long as the process. */
/* Starts the engine once, in the template. 0, or -1 after PHP has said why. */
int samovar_php_startup(const samovar_options *options);
/* Ends it: for the template's own end only. */
void samovar_php_shutdown(void);
/* Whether an extension, or PHP itself, has an ini directive of that name. */
bool samovar_has_directive(const char *name);
/* How the JIT compiles (`opcache.jit`); NULL: it does not. */
const char *samovar_jit(void);
/* The folder of sessions (`session.save_path`); NULL: they are not files, or there are none. */
const char *samovar_sessions(void);
/* A place in libphp's code. */
uintptr_t samovar_php_code(void);
/* PHP_VERSION of the libphp that was loaded, and of the headers this was built with. */
const char *samovar_php_version(void);
const char *samovar_php_built_for(void);
/* How modules for those headers are built: "API20220829,NTS". */
const char *samovar_php_api_built_for(void);

enum {
    SAMOVAR_RUN_DONE = 0,    /* the script ran and ended */
    SAMOVAR_RUN_STOP = 1,    /* it was resident until the server stopped */
    SAMOVAR_RUN_RESTART = 2, /* it was resident until a fatal error: boot it again */
    SAMOVAR_RUN_ENDED = 3    /* it was resident until it ended by itself: a fresh worker goes on */
};

/* Runs the script of the request `head` (script model); stays inside when it becomes resident.
 * The request is finished when this returns. */
int samovar_php_run(const samovar_head *head);
/* Why a worker must not take another request after this one, which has changed its process
 * (leave_reason in ring.h); 0: it may. */
int samovar_stained(void);
/* This process is the server's own, not one that a request has forked: signals to stop are not for
 * it. */
void samovar_is_ours(void);
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

/* Where C looks for the fields of a request's head, in their order: for the test that Rust has them
 * there. */
enum { SAMOVAR_HEAD_FIELDS = 22 };
extern const size_t samovar_head_offsets[SAMOVAR_HEAD_FIELDS];

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
/* The setting whose time the request has used up (its script is to end); NULL: it may go on. */
const char *samovar_overrun(void);
/* The script asks for that much more time from now on; how much of it it gets, ms. */
uint64_t samovar_extend(uint64_t more_ms);
/* Whether the script goes on when its client has gone; nothing, where none runs. */
void samovar_outlive_client(bool outlives);
/* The request is over; its memory in the slot is the front's again. */
void samovar_finish(size_t peak_bytes);
/* What the request has cost so far, and how many this worker has finished before it. */
typedef struct {
    uint64_t wall_ns, cpu_ns, answer_bytes, requests;
} samovar_so_far;
_Static_assert(sizeof(samovar_so_far) == 4 * sizeof(uint64_t), "SoFar of boundary.rs");
samovar_so_far samovar_request_so_far(void);
/* CPU time that this worker's requests have used so far, ns. No system call. */
uint64_t samovar_cpu_ns(void);
/* What the preflight of a booted process has found; all texts may be cut. */
void samovar_finding(const char *kind, const char *action, const char *what, const char *where,
                     const char *advice);
/* In the image process: says what kind of image there is. "shared": stays and forks, and returns in
 * each worker. Any other: ends the process. In a worker that boots by itself it only returns. */
void samovar_image_is(const char *mode, size_t bytes, size_t regions);
/* Memory for what a rollback must not bring back (memory/image.c). NULL: none. */
void *samovar_shared_memory(size_t len);
/* Gives it back. */
void samovar_shared_memory_end(void *at, size_t len);
/* A rollback begins: from here on no code of the application runs. */
void samovar_rolls_back(void);
/* A rollback has taken `ns` and copied `pages` pages. */
void samovar_rolled_back(uint64_t ns, size_t pages, bool searched);
/* A script that runs whole has called checkpoint(): its worker leaves after the request, unless it
 * is one that runs such scripts to see what they take. */
void samovar_met_checkpoint(bool is_sample);
/* Where this worker stands among all that live; 0 in other processes. */
unsigned samovar_place_among_workers(void);
/* This process is no worker (any more): what it would answer has no reader. */
void samovar_detach(void);
/* Notes why this worker leaves (leave_reason in ring.h). */
void samovar_leave(int reason);
/* The next warm-up request, NULL after the last. Valid for the life of the process. */
const samovar_head *samovar_next_warmup(void);
/* 1: this process runs a warm-up request, whose answer nobody reads. */
extern bool samovar_warming;
/* C, called by Rust when this process becomes a worker; when it has taken a request, and how long
 * before that this worker's boot began and how long it took, if the request is its first; before it
 * finishes it: what there is to say of it, `len` bytes that stay until the next is taken, and how
 * PHP ended it. */
void samovar_ledger_install(void);
void samovar_ledger_open(const samovar_head *head, uint64_t taken_ns, uint64_t boot_ago_ns,
                         uint64_t boot_ns);
const uint8_t *samovar_ledger_close(size_t *len, samovar_ending *ending);
/* C, called by Rust: the request has waited for its client; this process is no worker any more. */
void samovar_ledger_client(uint32_t times, uint64_t ns);
void samovar_ledger_forked(void);
/* C, called by Rust in a template that traces: a child of it finds out what the instrument costs,
 * and writes that there; the template adopts it (false: there is nothing). */
void *samovar_graph_costs_room(void);
void samovar_graph_calibrate(void *costs);
bool samovar_graph_adopt(const void *costs);
/* C, called by Rust in a worker that traces: it becomes one; has taken a request; is about to
 * finish it (of an image process: boots, and is about to be the image; no head): its call graph,
 * `len` bytes that stay until the next is taken; is no worker any more.
 */
void samovar_graph_install(void);
void samovar_graph_open(void);
const uint8_t *samovar_graph_close(const samovar_head *head, size_t peak_bytes, size_t *len);
void samovar_graph_forked(void);
/* Rust, called by C: the number of this process's template, if somebody wants to hear what was
 * loaded (else 0); and that (loads/report.c). */
uint64_t samovar_loads_wanted(void);
void samovar_loads_send(const char *report, size_t len);
/* Rust, called by C: of which generation this worker is; 0: this process is none. */
unsigned samovar_generation(void);
/* Rust, called by C: the boot has come to its checkpoint, or to its end; what it has called is
 * told.
 */
void samovar_boot_over(void);
/* C, called by Rust: the waits of the request that begins end the worker's turn; those after it do
 * not (interpose/blocking.c). */
void samovar_turn_open(void);
void samovar_turn_close(void);
/* Rust, called by C: the worker is about to wait; true: requests wait for a turn, and if it does
 * wait, they are to be given it. It goes on. None of them touches errno. */
bool samovar_turn_pause(void);
void samovar_turn_pass(void);
void samovar_turn_resume(void);
/* C, called by Rust before a request is taken: 0 when this worker must not take one. */
int samovar_may_take(void);
/* C, called by Rust then: it may, but has asked for samovar_take() to come back first, with NULL.
 */
bool samovar_idle_asked(void);
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
_Static_assert(offsetof(samovar_event, message_len) == 2 * sizeof(size_t),
               "RawEvent of boundary/logs.rs");
_Static_assert(offsetof(samovar_event, context_len) == 4 * sizeof(size_t),
               "RawEvent of boundary/logs.rs");
_Static_assert(sizeof(samovar_event) == 6 * sizeof(size_t), "RawEvent of boundary/logs.rs");
void samovar_log_event(const samovar_event *event);

#endif
