/* The ring as C sees it: written by `UPDATE=1 cargo test -p samovar-ring` from
 * crates/ring/src/request.rs and report.rs. Change those. */
#ifndef SAMOVAR_RING_H
#define SAMOVAR_RING_H

#include <stdint.h>

/* A string of a request: offset from the start of its head, and length without its NUL. */
typedef struct {
    uint32_t off;
    uint32_t len;
} samovar_str;
_Static_assert(sizeof(samovar_str) == 8, "as in Rust");

/* One header of a request. */
typedef struct {
    samovar_str name;
    samovar_str value;
} samovar_header;
_Static_assert(sizeof(samovar_header) == 16, "as in Rust");

/* Flags of a request: it came over TLS; its script is the front controller; somebody reads
 * what is said of it; a web server has told all its variables; it is a sample of whole
 * scripts. */
enum {
    SAMOVAR_HTTPS = 1,
    SAMOVAR_APP = 2,
    SAMOVAR_LEDGER = 4,
    SAMOVAR_FASTCGI = 8,
    SAMOVAR_WHOLE = 16
};

/* Most bytes of what is said of it. */
enum { SAMOVAR_REPORT_BYTES = 8192 };

/* How PHP ended it. */
typedef enum {
    ENDING_RETURNED = 0,
    ENDING_FATAL = 1,
    ENDING_OVERTIME = 2,
    ENDING_EXIT = 3
} samovar_ending;

/* A request's head. Offset 0 means absent for the optional strings. */
typedef struct {
    samovar_str method;
    samovar_str target;
    samovar_str query;
    samovar_str protocol;
    samovar_str script_filename;
    samovar_str script_name;
    samovar_str document_uri;
    samovar_str path_info;
    samovar_str document_root;
    samovar_str server_name;
    samovar_str server_addr;
    samovar_str remote_addr;
    samovar_str request_id;
    samovar_str content_type;
    samovar_str cookie;
    samovar_str authorization;
    int64_t content_length; /* -1: none */
    uint32_t server_port;
    uint32_t remote_port;
    uint32_t flags;
    uint32_t headers;
    uint32_t headers_off;
    uint32_t variables; /* Further variables of the request, behind the headers in their table. */
} samovar_head;
_Static_assert(sizeof(samovar_head) == 160, "as in Rust");

/* Why a worker cannot go on after this request. */
typedef enum {
    LEAVE_NOT = 0,
    /* A request left a child process. */
    LEAVE_CHILD = 1,
    /* A request left a thread. */
    LEAVE_THREAD = 2,
    /* A request closed a descriptor of the image. */
    LEAVE_DESCRIPTOR = 3,
    /* A connection of the image died, or had bytes left. */
    LEAVE_CONNECTION = 4,
    /* A request unmapped memory of the image, or changed more of it than can be followed. */
    LEAVE_MAPPING = 5,
    /* A request changed user, limits, root … of the process. */
    LEAVE_PRIVILEGES = 6,
    /* A worker that runs whole scripts met a checkpoint: its successor boots ahead. */
    LEAVE_CHECKPOINT = 7,
    /* The application cannot go on. */
    LEAVE_FATAL = 8,
    /* A request left a System V semaphore changed. */
    LEAVE_LOCK = 9,
    /* A request made a POSIX timer. */
    LEAVE_TIMER = 10,
    /* The application's own loop over requests has ended. */
    LEAVE_END = 11,
    /* A request of a worker that does not roll back left signals blocked. */
    LEAVE_SIGNAL = 12,
    /* The application's resume hook says that what it has booted no longer fits. */
    LEAVE_STALE = 13,
    /* A request was ended because its time was over. */
    LEAVE_OVERRUN = 14
} leave_reason;

#endif
