/* The order of the waits and statements of a request, and the time in which it waited for a CPU. */
#ifndef SAMOVAR_INSIGHT_TIMELINE_H
#define SAMOVAR_INSIGHT_TIMELINE_H

#include <stdint.h>

enum {
    SPANS_MAX = 200,            /* of one request; the shortest ones are dropped */
    DELAY_KNOWN_NS = 10000000,  /* how long a reading of the scheduler's counter is used */
    DELAY_MEASURED_NS = 5000000 /* shorter requests are not measured */
};

/* Values of `SpanKind` in crates/insight/src/report.rs. */
typedef enum { SPAN_STATEMENT = 0, SPAN_WAIT = 1 } span_kind;

typedef struct {
    uint64_t from_ns, ns;
    uint16_t index; /* of the statement's record, or of the wait's peer */
    uint8_t kind;
} timeline_span;

typedef struct {
    uint32_t count, dropped;
    uint64_t shortest_ns; /* of the spans, at most */
    uint64_t read_ns;     /* when the scheduler's counter was read */
    uint64_t delay_ns;    /* its value */
    uint64_t taken_ns;
    timeline_span spans[SPANS_MAX];
} timeline_state;

/* NULL if this process is not a worker, or no longer one. */
extern timeline_state *samovar_timeline;

void samovar_timeline_install(void);
void samovar_timeline_open(uint64_t taken_ns);
void samovar_timeline_add(span_kind kind, uint32_t index, uint64_t from_ns, uint64_t ns);
/* Returns the time in which the request could have run, but other processes did. 0: none, or it
 * was too short to be measured. */
uint64_t samovar_timeline_delay_ns(void);

#endif
