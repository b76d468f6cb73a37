/*
 * A library for LD_PRELOAD that shifts the clocks. The file $CHAOS_CLOCK contains two numbers of
 * seconds. The first shifts the time of day. The second shifts the time since boot, and with it the
 * time of day. tests/suite/chaos/clock.rs writes them while the server runs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Shared, so that all processes use the same time, and a rollback does not restore an earlier
 * one. */
static volatile const int64_t *offsets;

__attribute__((constructor)) static void open_clock(void) {
    const char *path = getenv("CHAOS_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) {
        return;
    }
    void *map = mmap(NULL, 2 * sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    offsets = map == MAP_FAILED ? NULL : map;
    close(file);
}

static long raw(long number, long a, long b, long c, long d, long e, long f) {
    long result;
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    result = x0;
#else
#error "a system call of this processor"
#endif
    return result;
}

static long respond(long result) {
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

static int64_t offset_of(clockid_t clock) {
    if (!offsets) {
        return 0;
    }
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
        return offsets[0] + offsets[1];
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_BOOTTIME:
        return offsets[1];
    default:
        return 0;
    }
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    long result = raw(SYS_clock_gettime, clock, (long)time, 0, 0, 0, 0);
    if (result == 0) {
        time->tv_sec += offset_of(clock);
    }
    return (int)respond(result);
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) {
        *out = now.tv_sec;
    }
    return now.tv_sec;
}

/* Rust's library waits until a point in time (FUTEX_WAIT_BITSET). It is converted to the
 * kernel's clock. */
long syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
    long d = va_arg(list, long), e = va_arg(list, long), f = va_arg(list, long);
    va_end(list);
    struct timespec until;
    if (number == SYS_futex && d && (b & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET) {
        until = *(const struct timespec *)d;
        until.tv_sec -= offset_of(b & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC);
        d = (long)&until;
    }
    return respond(raw(number, a, b, c, d, e, f));
}
