/* sleep, usleep, nanosleep, sigwait, pause: waits for time or for a signal. */
#define _GNU_SOURCE
#include "interpose/blocking.h"
#include <errno.h>
#include <signal.h>
#include <time.h>

enum { KERNEL_SIGSET_BYTES = 8 };

int nanosleep(const struct timespec *time, struct timespec *left) {
    return (int)BLOCKING(BLOCKS_SLEEP, -1, SYS_nanosleep, time, left, 0, 0, 0, 0);
}

/* Its result is the error. */
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                    struct timespec *left) {
    if (clock == CLOCK_THREAD_CPUTIME_ID) {
        return EINVAL; /* As libc. */
    }
    const int error = errno;
    const long result =
        BLOCKING(BLOCKS_SLEEP, -1, SYS_clock_nanosleep, clock, flags, time, left, 0, 0);
    const int why = result < 0 ? errno : 0;
    errno = error;
    return why;
}

int usleep(useconds_t us) {
    const struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000};
    return nanosleep(&time, NULL);
}

/* Returns the time left when a signal has interrupted it, rounded down as in libc. */
unsigned sleep(unsigned seconds) {
    const int error = errno;
    struct timespec time = {.tv_sec = seconds};
    if (nanosleep(&time, &time) < 0) {
        return (unsigned)time.tv_sec;
    }
    errno = error;
    return 0;
}

int pause(void) {
    return (int)BLOCKING(BLOCKS_SIGNAL, -1, SYS_ppoll, NULL, 0, NULL, NULL, 0, 0);
}

int sigsuspend(const sigset_t *mask) {
    return (int)BLOCKING(BLOCKS_SIGNAL, -1, SYS_rt_sigsuspend, mask, KERNEL_SIGSET_BYTES, 0, 0, 0,
                         0);
}

int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *limit) {
    const int number = (int)BLOCKING(BLOCKS_SIGNAL, -1, SYS_rt_sigtimedwait, set, info, limit,
                                     KERNEL_SIGSET_BYTES, 0, 0);
    if (number >= 0 && info && info->si_code == SI_TKILL) {
        info->si_code = SI_USER; /* As libc: raise() looks like kill(). */
    }
    return number;
}

int sigwaitinfo(const sigset_t *set, siginfo_t *info) {
    return sigtimedwait(set, info, NULL);
}

int sigwait(const sigset_t *set, int *number) {
    int got;
    do {
        got = sigtimedwait(set, NULL, NULL);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return errno;
    }
    *number = got;
    return 0;
}
