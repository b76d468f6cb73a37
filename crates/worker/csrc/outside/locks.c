/* Reads the locks of man proc_pid_fdinfo: "lock: 1: POSIX ADVISORY READ pid device start end". */
#define _GNU_SOURCE
#include "outside/locks.h"
#include "outside/hash.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/syscall.h>
#include <unistd.h>

bool samovar_locks_range(int fd, off_t *from, off_t *to) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    FILE *info = fopen(path, "re");
    *from = INT64_MAX;
    *to = 0;
    while (info && fgets(line, sizeof line, info)) {
        long long start;
        char end[32];
        if (sscanf(line, "lock: %*s %*s %*s %*s %*s %*s %lld %31s", &start, end) == 2) {
            const off_t last = strcmp(end, "EOF") == 0 ? INT64_MAX : (off_t)atoll(end);
            *from = MIN(*from, (off_t)start);
            *to = MAX(*to, last);
        }
    }
    if (info) {
        fclose(info);
    }
    return *from <= *to;
}

/* Reads the text from the first "lock:" of its fdinfo on. Returns its number of bytes. */
size_t samovar_locks_read(int fd, char *text) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    const int info = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    const ssize_t n = info >= 0 ? syscall(SYS_read, info, text, LOCKS_BYTES_MAX - 1) : 0;
    if (info >= 0) {
        syscall(SYS_close, info);
    }
    text[n > 0 ? n : 0] = 0;
    const char *from = strstr(text, "lock:");
    if (!from) {
        text[0] = 0;
        return 0;
    }
    const size_t len = strlen(from);
    memmove(text, from, len + 1);
    return len;
}

uint64_t samovar_locks_in_short(int fd) {
    char text[LOCKS_BYTES_MAX];
    const size_t len = samovar_locks_read(fd, text);
    return len > 0 ? samovar_hash(text, len) : 0;
}
