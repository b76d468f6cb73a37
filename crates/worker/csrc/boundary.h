/* The boundary between Rust and PHP. Everything that crosses it is declared here.
 *
 * Rule: a PHP function that can bail out (longjmp) is called only from C, inside a zend_try of
 * this directory. The Rust functions below never call PHP. So no jump ever crosses a Rust frame. */
#ifndef SAMOVAR_BOUNDARY_H
#define SAMOVAR_BOUNDARY_H

#include <stdbool.h>
#include "from_rust.h"
#include "request.h"

/* Places variables that each request writes next to each other, because a rollback copies back
 * whole pages. */
#define SAMOVAR_OF_REQUEST __attribute__((section("samovar_of_request")))

/* ---- Rust calls C -------------------------------------------------------------------------- */

/* The settings: `samovar_options` in from_rust.h, which build.rs generates from
 * src/php_options.in.rs. The data it points to lives as long as the process. */
/* Starts the engine once, in the template. Returns 0, or -1 after PHP has reported the reason. */
int samovar_php_startup(const samovar_options *options);
/* Shuts the engine down. Only for the end of the template. */
void samovar_php_shutdown(void);
/* Returns true if PHP or an extension has an ini directive of that name. */
bool samovar_has_directive(const char *name);
/* Returns the value of a directive; NULL: neither PHP nor an extension has it. */
const char *samovar_directive(const char *name);
/* Returns the name of a loaded extension, counted from 0; NULL: there are fewer. */
const char *samovar_extension(size_t number);
/* Returns the mode in which the JIT compiles (`opcache.jit`), or NULL if the JIT is off. */
const char *samovar_jit(void);
/* Fills in the figures of opcache's shared memory. Returns false if opcache is off. Only for the
 * template: it allocates memory. */
typedef struct {
    uint64_t used_bytes;
    uint64_t free_bytes;
    uint64_t wasted_bytes;
    uint64_t strings;
    uint64_t strings_used_bytes;
    uint64_t strings_free_bytes;
    uint64_t scripts;
    uint64_t keys;
    uint64_t keys_max;
    uint64_t hits;
    uint64_t misses;
    uint64_t restarts_memory;
    uint64_t restarts_keys;
    uint64_t restarts_manual;
    uint64_t is_full;
} samovar_opcache_figures;
bool samovar_opcache_look(samovar_opcache_figures *to);
/* Returns the folder of the session files (`session.save_path`). NULL: sessions are not files,
 * or there are none. */
const char *samovar_sessions(void);
/* Returns an address in libphp's code. */
uintptr_t samovar_php_code(void);
/* PHP_VERSION of the loaded libphp, and of the headers that this binary was built with. */
const char *samovar_php_version(void);
const char *samovar_php_built_for(void);
/* Build ID of modules for those headers, for example "API20220829,NTS". */
const char *samovar_php_api_built_for(void);

enum {
    SAMOVAR_RUN_DONE = 0,    /* the script ran and ended */
    SAMOVAR_RUN_STOP = 1,    /* it was resident until the server stopped */
    SAMOVAR_RUN_RESTART = 2, /* it was resident until a fatal error: boot it again */
    SAMOVAR_RUN_ENDED = 3    /* it was resident until its loop ended: a new worker continues */
};

/* Runs the script of the request `head` (script model). Does not return while the script is
 * resident. The request is finished when this function returns. */
int samovar_php_run(const samovar_head *head);
/* Returns the reason (leave_reason in ring.h) why a worker must not take another request: the
 * last request has changed its process. 0: it may take one. */
int samovar_tainted(void);
/* Marks this process as the server's own, not forked by a request. Stop signals do not end such
 * a process. */
void samovar_is_ours(void);
/* Runs the front controller without a request, until its Samovar\serve() or checkpoint() takes
 * requests. Returns SAMOVAR_RUN_DONE if it ended without a call of either. */
int samovar_php_boot(int place);

/* Runs a script as the PHP command line does, then shuts PHP down. `words` holds the script and
 * its arguments. Called once, in a child of the template. Returns the exit status. */
int samovar_php_console(int count, char **words);
/* Runs `driver`, which boots a test framework and asks for orders, as the command line `script`.
 * `binary` is PHP_BINARY. Returns the exit status, in each child that an order has forked. */
int samovar_php_tests(const char *driver, const char *script, const char *binary);
/* Compiles the files that `samovar_next_source` returns, each in a request of its own, and runs
 * none. Returns after the last one. */
void samovar_php_compile(void);

/* Kinds of processes that run the front controller. The kind defines the effect of
 * Samovar\\checkpoint() and serve(). */
enum {
    SAMOVAR_RUNS_SCRIPTS = 0, /* a worker that runs whole scripts */
    SAMOVAR_BOOTS_IMAGE = 1,  /* the process that the workers are forked from */
    SAMOVAR_BOOTS_WORKER = 2, /* a worker that boots the application itself */
    SAMOVAR_REHEARSES = 3,    /* a process that ends where the image would be taken */
    SAMOVAR_RUNS_CONSOLE = 4  /* a console worker: there are no requests */
};

/* ---- C calls Rust -------------------------------------------------------------------------- */

/* Waits for the next order of a test run and returns the name of its file, which is valid until
 * the next call; `len`: its length. `is_child`: the call has forked this process for it. NULL:
 * there are no more orders. */
const char *samovar_next_test_order(size_t *len, bool *is_child);

/* A file to compile. Valid until the next call of samovar_next_source. */
typedef struct {
    const char *name;
    size_t name_len;
    const char *text;
    size_t len;
} samovar_source;
/* Ends the current file, if there is one, and waits for the next. Returns false if there are no
 * more. */
bool samovar_next_source(samovar_source *source);
/* Reports a message of PHP about the current file. `kind`: its name. */
void samovar_source_message(const char *kind, bool is_error, uint32_t line, const char *message,
                            size_t len);

/* Resident model: waits for the next request. Returns NULL when the server stops. */
const samovar_head *samovar_take(void);
/* Reports that the application waits for requests in Samovar\serve() or below its checkpoint. */
void samovar_resident(bool rolls_back);
/* Reads the request body. Returns 0 at its end, or when the client has disconnected. Blocks. */
size_t samovar_read_body(char *to, size_t room);
/* Sets the response head: lines "Name: value\n". Returns 0, or -1 if they are too long. */
int samovar_put_head(int status, const char *lines, size_t len);
/* Sends an interim response (1xx) with such lines before the response. Returns 0, or -1 if it is
 * too late or too much. */
int samovar_put_interim(int status, const char *lines, size_t len);
/* Appends to the response body. Returns 0, or -1 if the client has disconnected. Blocks on
 * backpressure. */
int samovar_write(const char *bytes, size_t len);
/* Sends the response head and body written so far. Returns 0, or -1 if the client has
 * disconnected. */
int samovar_flush(void);
/* Marks the response as complete for the client. The request continues. */
void samovar_end_response(void);
/* Marks the response as broken. The client's connection is closed. */
void samovar_abort_response(void);
/* The request has failed: jobs for the time after the response are dropped. */
void samovar_request_failed(void);
/* Returns 1 if the client has disconnected. */
int samovar_is_cancelled(void);
/* Returns the name of the setting whose time the request has used up (its script must end).
 * NULL: it may continue. */
const char *samovar_overrun(void);
/* Requests `more_ms` of additional time for the script, counted from now. Returns the granted
 * time in ms. */
uint64_t samovar_extend(uint64_t more_ms);
/* Sets whether the script continues after its client has disconnected. Has no effect when no
 * script runs. */
void samovar_outlive_client(bool outlives);
/* Finishes the request. Its memory in the slot belongs to the front again. */
void samovar_finish(size_t peak_bytes, int64_t grown_bytes);
/* Cost of the request so far, and number of requests that this worker has finished before it. */
typedef struct {
    uint64_t wall_ns, cpu_ns, response_bytes, requests;
} samovar_so_far;
_Static_assert(sizeof(samovar_so_far) == 4 * sizeof(uint64_t), "SoFar of boundary.rs");
samovar_so_far samovar_request_so_far(void);
/* Returns the CPU time used by this worker's requests so far, in ns. Makes no system call. */
uint64_t samovar_cpu_ns(void);
/* Reports a finding of the preflight of a booted process. All texts may be truncated. */
void samovar_finding(const char *kind, const char *action, const char *what, const char *where,
                     const char *advice);
/* Called in the image process: reports the mode of the image. With "shared" the process stays
 * and forks, and the function returns in each worker. Any other mode ends the process. In a
 * worker that boots the application itself, the function only returns. */
void samovar_image_is(const char *mode, size_t bytes, size_t regions);
/* Allocates memory that a rollback must not restore (memory/image.c). Returns NULL if there is
 * none. */
void *samovar_shared_memory(size_t len);
/* Frees that memory. */
void samovar_shared_memory_end(void *at, size_t len);
/* Reports the start of a rollback: no application code runs from here on. */
void samovar_rolls_back(void);
/* Reports that a rollback has taken `ns` and copied `pages` pages. */
void samovar_rolled_back(uint64_t ns, size_t pages, bool searched);
/* Reports that the session of a database connection of the image was reset. */
void samovar_connection_was_reset(void);
/* Reports that a script that runs as a whole has called checkpoint(). Its worker leaves after
 * the request, unless it runs such scripts to measure their cost. */
void samovar_met_checkpoint(bool is_sample);
/* Returns the number of this worker among all live workers. 0 in other processes. */
unsigned samovar_place_among_workers(void);
/* Declares that this process is not a worker, or no longer one. A response from it would have no
 * reader. */
void samovar_detach(void);
/* Records the reason why this worker leaves (leave_reason in ring.h). */
void samovar_leave(int reason);
/* Returns the next warm-up request, NULL after the last. It is valid for the life of the
 * process. */
const samovar_head *samovar_next_warmup(void);
/* True while this process runs a warm-up request. Its response has no reader. */
extern bool samovar_warming;
/* C, called by Rust, for request accounting:
 *
 * - install: this process becomes a worker.
 * - open: the worker has taken a request. For its first request: how long before it the worker's
 *   boot began, and how long the boot took.
 * - close: the worker is about to finish the request. Returns the report, `len` bytes that stay
 *   valid until the next request is taken, and the way PHP ended the request. */
void samovar_request_accounting_install(void);
void samovar_request_accounting_open(const samovar_head *head, uint64_t taken_ns,
                                     uint64_t boot_ago_ns, uint64_t boot_ns);
const uint8_t *samovar_request_accounting_close(size_t *len, samovar_ending *ending);
/* C, called by Rust: the request has waited for its client; this process is no longer a worker. */
void samovar_request_accounting_client(uint32_t times, uint64_t ns);
void samovar_request_accounting_forked(void);
/* C, called by Rust in a template that traces. A child of the template measures the cost of the
 * instrumentation and writes it into the room. The template adopts the result (false: there is
 * none). */
void *samovar_graph_costs_room(void);
void samovar_graph_calibrate(void *costs);
bool samovar_graph_adopt(const void *costs);
/* C, called by Rust in a worker that traces:
 *
 * - install: this process becomes such a worker.
 * - open: the worker has taken a request.
 * - close: the worker is about to finish the request. Returns its call graph, `len` bytes that
 *   stay valid until the next request is taken.
 * - forked: this process is no longer a worker.
 *
 * An image process calls open when it boots, and close without a head when it is about to become
 * the image. */
void samovar_graph_install(void);
void samovar_graph_open(void);
const uint8_t *samovar_graph_close(const samovar_head *head, size_t peak_bytes, size_t *len);
void samovar_graph_forked(void);
/* Rust, called by C: returns the number of this process's template if a reader wants reports of
 * loaded code (else 0); sends such a report (loads/report.c). */
uint64_t samovar_loads_wanted(void);
void samovar_loads_send(const char *report, size_t len);
/* Rust, called by C: returns the generation of this worker. 0: this process is not a worker. */
unsigned samovar_generation(void);
/* Rust, called by C: the boot has reached its checkpoint or its end. Sends the call graph of the
 * boot. */
void samovar_boot_over(void);
/* C, called by Rust: waits of the request that begins now release the worker's run permit. Waits
 * after the close do not (interpose/blocking.c). */
void samovar_permit_open(void);
void samovar_permit_close(void);
/* Rust, called by C:
 *
 * - pause: the worker is about to wait. Returns true if requests wait for a run permit.
 * - pass: the worker does wait, and passes its permit on to them.
 * - resume: the worker continues.
 *
 * None of them changes errno. */
bool samovar_permit_pause(void);
void samovar_permit_pass(void);
void samovar_permit_resume(void);
/* C, called by Rust before a request is taken. Returns 0 if this worker must not take one. */
int samovar_may_take(void);
/* C, called by Rust after that returned 0. Returns true if the worker may take a request, but
 * wants samovar_take() to return NULL first. */
bool samovar_idle_asked(void);
/* Counts a message of PHP. The levels are those of `MessageLevel` in crates/ring. */
enum { MESSAGE_ERROR, MESSAGE_WARNING, MESSAGE_NOTICE, MESSAGE_DEPRECATED };
void samovar_count_message(uint32_t level);
/* Logs one message with the id of the request ("" for none). */
void samovar_log(const char *message, size_t len, const char *request_id);
/* Logs a message with a level ("warn") and a JSON object (len 0: none). */
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
