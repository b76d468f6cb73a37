/* Timers of a request: their measurements, and how these are added to the request accounting. */
#ifndef SAMOVAR_INSIGHT_TIMERS_H
#define SAMOVAR_INSIGHT_TIMERS_H

#include "insight/request_accounting.h"
#include <php.h>

enum {
    TIMER_SECONDS_MAX = 1000000000, /* maximum time that may be added to a timer */
    TIMER_HITS_MAX = 1000000000
};

/* Wall and CPU time, ns. */
typedef struct {
    uint64_t wall, user, system;
} timer_times;

typedef struct samovar_timer samovar_timer;

/* One timer. It is in the request's list from the time it is listed until it is reported or
 * dropped. */
struct samovar_timer {
    samovar_timer *next, *previous;
    zend_resource *resource; /* of pinba's functions; NULL: the timer of an object */
    HashTable *tags;         /* names and texts, sorted by name */
    zval data;               /* of pinba's functions */
    bool is_listed, is_running;
    uint32_t hits;
    timer_times began, sum;
};

/* Converts tags to the form in which timers keep them. NULL: they are invalid, and `problem` is
 * the reason. */
HashTable *samovar_timer_tags(const HashTable *from, const char **problem);

void samovar_timer_list(samovar_timer *t);
void samovar_timer_unlist(samovar_timer *t);
samovar_timer *samovar_timers_first(void);
/* Forgets all timers, because the heap that held them is gone. */
void samovar_timers_forget(void);

void samovar_timer_start(samovar_timer *t);
/* Returns false if the timer does not run. */
bool samovar_timer_stop(samovar_timer *t);
/* Returns the times measured so far. */
timer_times samovar_timer_read(const samovar_timer *t);
/* Adds the measured times to the request accounting, and resets the timer. */
void samovar_timer_tell(samovar_timer *t);

/* Returns the CPU and wall time of this thread so far. */
timer_times samovar_times_now(void);

#endif
