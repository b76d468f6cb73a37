/* Jobs: the Rust functions that C calls to push them (src/jobs.rs), and the objects of a batch.
 *
 * The Rust functions never call PHP. */
#ifndef SAMOVAR_FUNCTIONS_JOBS_H
#define SAMOVAR_FUNCTIONS_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <php.h>

/* Called when PHP starts. */
void samovar_queue_startup(void);
void samovar_job_startup(void);

/* ---- C calls Rust -------------------------------------------------------------------------- */

typedef struct {
    const char *payload; /* JSON */
    size_t payload_len;
    const char *key; /* NULL: none */
    size_t key_len;
    int32_t priority;
    uint32_t attempts; /* 0: those of the queue */
    uint64_t delay_ms;
    uint64_t unique_ms; /* 0: not unique */
} samovar_new_job;

enum { SAMOVAR_JOBS_STORED = 0, SAMOVAR_JOBS_WRONG = 1, SAMOVAR_JOBS_FAILED = 2 };

/* Adds a job to the next push. */
void samovar_jobs_add(const samovar_new_job *job);
/* Drops the jobs that were added. */
void samovar_jobs_drop(void);

/* Returns the maximum number of jobs of a push. */
size_t samovar_jobs_max(void);
/* Sets the trace of the jobs that were added (W3C Trace Context). */
void samovar_jobs_trace(const char *traceparent, size_t traceparent_len, const char *tracestate,
                        size_t tracestate_len);
/* Pushes the jobs that were added, and waits until they are durable. Without jobs, the ids are the
 * numbers of ready, delayed and running jobs. Returns one of SAMOVAR_JOBS_*. */
int samovar_jobs_push(const char *queue, size_t len);
/* Keeps the jobs that were added until the request has succeeded, and pushes them then. If it
 * fails, they are dropped. There are no ids. If no request runs, pushes them now. Returns one of
 * SAMOVAR_JOBS_*. */
int samovar_jobs_defer(const char *queue, size_t len);
/* Returns the reason why the last push failed. It is valid until the next push. */
const char *samovar_jobs_problem(void);
/* Returns the number of ids of the last push. */
size_t samovar_jobs_count(void);
/* Returns the id of a job of the last push; 0: another job has its key. */
int64_t samovar_jobs_id(size_t at);

/* ---- a batch ------------------------------------------------------------------------------- */

/* Creates the objects of a batch, which is a JSON document, in `jobs`. Returns false if it is not
 * one. */
bool samovar_jobs_of(zend_string *batch, zval *jobs);
/* Returns the results of these jobs as the server expects them in the response. `thrown` is the
 * exception that left the handler, or NULL. */
zend_string *samovar_jobs_results(HashTable *jobs, zend_object *thrown);

#endif
