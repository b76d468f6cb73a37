/* The data that the accounting of one request collects. */
#ifndef SAMOVAR_INSIGHT_ACCOUNTING_RECORD_H
#define SAMOVAR_INSIGHT_ACCOUNTING_RECORD_H

#include "ring.h"
#include <stdbool.h>
#include <stdint.h>

enum {
    WAITS_MAX = 32,         /* peers of one request; all others of a kind share one entry */
    NAME_BYTES = 255,       /* of a peer, a place, a route, a tag */
    TAGS_MAX = 32,          /* of one request */
    TIMER_SETS_MAX = 128,   /* sets of tags of the timers of one request */
    TIMER_TAGS_BYTES = 512, /* of one such set */
    KNOWN_PEERS = 16,       /* descriptors whose peer is known */
    WAIT_NS_MIN = 4000,     /* shorter calls are not waits: no thread wakes up so soon */
    ERRORS_MAX = 4,         /* errors of one request */
    PREVIOUS_MAX = 3,       /* previous exceptions of one error */
    FRAMES_MAX = 20,        /* of the stack of an error, innermost first */
    STACK_BYTES = 1536,     /* of such a stack, as text */
    MESSAGE_BYTES = 512     /* of the message of an error */
};

/* Values of `WaitKind` in crates/insight/src/report.rs. */
typedef enum {
    WAIT_TCP = 0,
    WAIT_UNIX = 1,
    WAIT_UDP = 2,
    WAIT_LOCK = 3,
    WAIT_DNS = 4,
    WAIT_SLEEP = 5,
    WAIT_PIPE = 6,
    WAIT_FILE = 7,
    WAIT_CLIENT = 8,
    WAIT_POLL = 9,
    WAIT_OTHER = 10,
    WAIT_KINDS = 11
} wait_kind;

/* A text of the report: truncated, valid UTF-8. */
typedef struct {
    uint8_t len;
    char text[NAME_BYTES];
} short_name;

typedef struct {
    wait_kind kind;
    uint32_t times;
    uint64_t ns;
    short_name peer;
} peer_waits;

typedef struct {
    short_name name, value;
} request_tag;

/* Sum of all timers with the same tags. The tags are encoded as in the report. */
typedef struct {
    uint32_t hits;
    uint16_t len;
    uint8_t tags[TIMER_TAGS_BYTES];
    uint64_t wall_ns, user_ns, system_ns;
} timer_sum;

/* Cached peer of a descriptor. Valid until a descriptor is closed or connected. */
typedef struct {
    int fd;
    uint32_t changes;
    uint32_t waits;
} known_peer;

/* Values of `ErrorKind` in crates/insight/src/report.rs. */
typedef enum {
    ERROR_FATAL = 0,    /* PHP ended the request */
    ERROR_UNCAUGHT = 1, /* no code caught the exception */
    ERROR_RENDERED = 2, /* the application caught it, and its response has a status of 5xx */
    ERROR_REPORTED = 3, /* Samovar\\report_exception() */
    ERROR_PREVIOUS = 4  /* the cause of the preceding one */
} error_kind;

/* Class, message and position of an exception or a fatal error. */
typedef struct {
    uint32_t line;
    uint16_t message_len;
    short_name class;
    short_name file; /* a path that is too long is cut at its start */
    char message[MESSAGE_BYTES];
} error_origin;

typedef struct {
    error_kind kind;
    uint16_t stack_len;
    uint16_t previous_count;
    error_origin origin;
    error_origin previous[PREVIOUS_MAX];
    char stack[STACK_BYTES]; /* lines as of getTraceAsString(), without arguments */
} error_record;

typedef struct {
    bool is_open; /* a request runs whose report has a reader */
    bool in_names;
    bool sleeps_known;
    samovar_ending ending;
    uint64_t taken_ns;
    uint64_t booted_ns;                     /* end of the script's boot; 0: it has none */
    uint64_t worker_ago_ns, worker_boot_ns; /* of the worker itself, before its first request */
    long sleeps;                            /* of this thread, at the last count */
    uint32_t dropped;
    uint32_t wait_count;
    uint32_t other_kinds; /* bits: kinds of wait whose entry of all other peers is set */
    uint32_t tag_count;
    uint32_t timer_count;
    uint32_t error_count;
    int status;               /* of the response; 0: its head is not sent */
    bool has_thrown;          /* `thrown` is the exception that was thrown last */
    bool thrown_is_unhandled; /* no code on the stack could have caught it */
    uint64_t longest_ns;
    short_name place; /* position in PHP code during the longest wait */
    short_name route;
    known_peer known[KNOWN_PEERS];
    peer_waits waits[WAITS_MAX + WAIT_KINDS]; /* the last ones are of all other peers, by kind */
    request_tag tags[TAGS_MAX];
    timer_sum timers[TIMER_SETS_MAX];
    error_record thrown;
    error_record errors[ERRORS_MAX];
    uint8_t report[SAMOVAR_REPORT_BYTES];
} request_accounting_state;

#endif
