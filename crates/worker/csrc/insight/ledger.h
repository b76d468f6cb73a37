/* What a worker notes of the request at hand, for who reads it in the front: what it waited for,
 * its timers, its route and tags, and how it ended.
 *
 * This folder knows the engine, the seam of blocking calls (interpose/) and nothing of execution
 * models. Its memory is shared memory of the worker's own: no rollback has to copy it. */
#ifndef SAMOVAR_INSIGHT_LEDGER_H
#define SAMOVAR_INSIGHT_LEDGER_H

#include "boundary.h"
#include "interpose/blocking.h"
#include <stdbool.h>
#include <stdint.h>

enum {
    WAITS_MAX = 32,         /* peers of one request; the rest is one more */
    NAME_BYTES = 255,       /* of a peer, a place, a route, a tag */
    TAGS_MAX = 32,          /* of one request */
    TIMER_SETS_MAX = 128,   /* sets of tags that one request's timers have */
    TIMER_TAGS_BYTES = 512, /* of one of them */
    KNOWN_PEERS = 16,       /* descriptors whose peer is known */
    WAIT_NS_MIN = 4000      /* what is shorter was no wait: nobody sleeps and wakes up so soon */
};

/* As `WaitKind` of crates/insight/src/report.rs has them. */
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
    WAIT_OTHER = 10
} wait_kind;

/* A text of what it says of itself: cut, and of valid UTF-8. */
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

/* Timers with the same tags, which are as the report has them. */
typedef struct {
    uint32_t hits;
    uint16_t len;
    uint8_t tags[TIMER_TAGS_BYTES];
    uint64_t wall_ns, user_ns, system_ns;
} timer_sum;

/* Which of the peers is behind a descriptor, as long as none is closed or connected. */
typedef struct {
    int fd;
    uint32_t changes;
    uint32_t waits;
} known_peer;

typedef struct {
    bool is_open; /* A request runs that somebody reads of. */
    bool in_names;
    bool sleeps_known;
    samovar_ending ending;
    uint64_t taken_ns;
    uint64_t booted_ns;                     /* when the script's boot was over; 0: it has none */
    uint64_t worker_ago_ns, worker_boot_ns; /* the worker's own, before its first request */
    long sleeps;                            /* of this thread, when they were last counted */
    uint32_t dropped;
    uint32_t wait_count;
    uint32_t tag_count;
    uint32_t timer_count;
    uint64_t longest_ns;
    short_name place; /* where PHP stood when it waited that long */
    short_name route;
    known_peer known[KNOWN_PEERS];
    peer_waits waits[WAITS_MAX + 1];
    request_tag tags[TAGS_MAX];
    timer_sum timers[TIMER_SETS_MAX];
    uint8_t report[SAMOVAR_REPORT_BYTES];
} ledger_state;

/* NULL: there is none, because this process is no worker (any more). */
extern ledger_state *samovar_ledger;

/* In MINIT: errors are looked at. */
void samovar_ledger_startup(void);
/* Of the request at hand; NULL where nobody reads it. */
static inline ledger_state *samovar_ledger_now(void) {
    return samovar_ledger && samovar_ledger->is_open ? samovar_ledger : NULL;
}

/* A whole script is ready to begin its work: the last call counts. */
void samovar_ledger_booted(void);
/* The route, as the application names it; the last one counts. */
void samovar_ledger_route(const char *name, size_t len);
/* One more tag of the request. */
void samovar_ledger_tag(const char *name, size_t name_len, const char *value, size_t len);

/* Waited so often and so long for something that has no name. */
void samovar_waits_add(ledger_state *l, wait_kind kind, uint32_t times, uint64_t ns);
/* Who asks of blocking calls (interpose/blocking.h). */
samovar_blocking_watcher samovar_waits_watch;

/* A call that was made where others ran meanwhile: `ns` of the time that the process slept are its
 * share. `only` is what samovar_selected_alone() has said before. Leaves errno alone. */
void samovar_waits_charge(const blocking_call *call, long result, int only, uint64_t ns);

/* Cuts `text`, and replaces what is no UTF-8. */
void samovar_short_name(short_name *to, const char *text, size_t len);

uint64_t samovar_now_ns(void);

#endif
