/* The time limit's timer of booted applications. */
#ifndef SAMOVAR_ROLLBACK_TIME_LIMIT_H
#define SAMOVAR_ROLLBACK_TIME_LIMIT_H

#include "memory/persistent.h"
#include <stdbool.h>
#include <stdint.h>

/* State of the timer, kept where no rollback restores it, because a rollback does not stop the
 * timer. */
typedef struct {
    bool known; /* no other code has changed the timer since */
    int64_t seconds;
    uint64_t at_ns; /* samovar_cpu_ns() when it was set */
} time_limit_state;

PERSISTENT_STATE(time_limit_state, samovar_time_limit_state, time_limit);

/* Called when a request begins: it may run for max_execution_time. */
void samovar_time_limit_arm(void);
/* Called when other code has changed the timer. */
void samovar_time_limit_forget(void);

#endif
