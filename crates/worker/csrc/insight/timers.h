/* Timers of a request: what they measure, and its way into the ledger. */
#ifndef SAMOVAR_INSIGHT_TIMERS_H
#define SAMOVAR_INSIGHT_TIMERS_H

#include "insight/ledger.h"
#include <php.h>

enum {
    TIMER_SECONDS_MAX = 1000000000, /* that a timer may be told to have measured */
    TIMER_HITS_MAX = 1000000000
};

/* Wall and CPU time, ns. */
typedef struct {
    uint64_t wall, user, system;
} timer_times;

typedef struct samovar_timer samovar_timer;

/* One timer. It stands in the request's list from when it is listed until it is told or dropped. */
struct samovar_timer {
    samovar_timer *next, *previous;
    zend_resource *resource; /* of pinba's functions; NULL: an object's */
    HashTable *tags;         /* names and texts, by name */
    zval data;               /* of pinba's functions */
    bool is_listed, is_running;
    uint32_t hits;
    timer_times began, sum;
};

/* Tags as timers keep them. NULL: `problem` says why these are none. */
HashTable *samovar_timer_tags(const HashTable *from, const char **problem);

void samovar_timer_list(samovar_timer *t);
void samovar_timer_unlist(samovar_timer *t);
samovar_timer *samovar_timers_first(void);
/* The heap that they lay in is gone. */
void samovar_timers_forget(void);

void samovar_timer_start(samovar_timer *t);
/* False: it does not run. */
bool samovar_timer_stop(samovar_timer *t);
/* So far. */
timer_times samovar_timer_read(const samovar_timer *t);
/* What it has measured is added up in the ledger, and is its own no more. */
void samovar_timer_tell(samovar_timer *t);

/* CPU and wall time of this thread so far. */
timer_times samovar_times_now(void);

#endif
