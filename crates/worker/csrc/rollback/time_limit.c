/* activate: max_execution_time of a booted application's requests.
 *
 * Sets the time limit without a system call per request (zend_set_timeout and zend_unset_timeout
 * make six). The signal handler is installed since the boot, and the timer counts CPU time, so
 * it need not be stopped while the worker waits. It is set to a 64th more than the limit, and
 * set again only when former requests have used up that 64th. So a request may run for its
 * limit, and for at most a 64th longer. */
#include "rollback/time_limit.h"
#include "boundary.h"
#include <php.h>
#include <sys/time.h>

static time_limit_state own_timer;

/* Returns the state of the timer. A rollback does not stop the timer, so the state is kept where
 * no rollback restores it. */
static time_limit_state *time_limit(void) {
    return samovar_persistent ? samovar_time_limit_state() : &own_timer;
}

void samovar_time_limit_forget(void) {
    time_limit()->known = false;
}

void samovar_time_limit_arm(void) {
    zend_long seconds = MAX(EG(timeout_seconds), 0);
    zend_atomic_bool_store_ex(&EG(timed_out), false);
#ifdef ZEND_MAX_EXECUTION_TIMERS
    zend_set_timeout(seconds, 1);
#else
    time_limit_state *timer = time_limit();
    const uint64_t slack_ns = (uint64_t)seconds * 1000000000 / 64;
    if (timer->known && timer->seconds == seconds && samovar_cpu_ns() - timer->at_ns <= slack_ns) {
        return;
    }
    struct itimerval limit = {
        .it_value = {.tv_sec = seconds, .tv_usec = (suseconds_t)(slack_ns % 1000000000 / 1000)}};
    limit.it_value.tv_sec += (time_t)(slack_ns / 1000000000);
    setitimer(ITIMER_PROF, &limit, NULL);
    timer->known = true;
    timer->seconds = seconds;
    timer->at_ns = samovar_cpu_ns();
#endif
}
