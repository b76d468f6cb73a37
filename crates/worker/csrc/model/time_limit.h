/* The time limit's timer of booted applications. */
#ifndef SAMOVAR_MODEL_TIME_LIMIT_H
#define SAMOVAR_MODEL_TIME_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* A rollback does not stop the timer: what is known of it lies where none reaches it. */
typedef struct {
    bool known; /* Nobody else has touched it since. */
    int64_t seconds;
    uint64_t at_ns; /* samovar_cpu_ns() when it was set. */
} time_limit_state;

/* A request begins: it may run for max_execution_time. */
void samovar_time_limit_arm(void);
/* Somebody else has touched the timer. */
void samovar_time_limit_forget(void);

#endif
