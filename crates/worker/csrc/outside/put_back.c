/* After a request: closes the descriptors that it has opened, and restores those of the boot. If
 * one cannot be restored, the worker ends. */
#define _GNU_SOURCE
#include "outside/put_back.h"
#include "leave.h"
#include "outside/locks.h"
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    DATAGRAMS_MAX = 256, /* dropped in one pass */
    FILLED_MAX = 512,    /* descriptors of an image, including free numbers between them */
    SPARE = 8,           /* numbers left free in the kernel's table */
    LIMIT_LEFT_MIN = 256 /* descriptors that a request can open at least */
};

/* ---- descriptor numbers -------------------------------------------------------------------- */

static bool note_descriptors(kept_state *s) {
    DIR *folder = opendir("/proc/self/fd");
    if (!folder) {
        return false;
    }
    bool fits = true;
    for (const struct dirent *e; (e = readdir(folder));) {
        int fd = atoi(e->d_name);
        if (e->d_name[0] == '.' || fd == dirfd(folder)) {
            continue;
        }
        if (fd >= DESCRIPTORS_MAX) {
            fits = false;
        } else {
            samovar_set_add(&s->open, fd);
        }
    }
    closedir(folder);
    return fits;
}

/* Returns the size of the kernel's descriptor table of this process. 0: unknown. */
static unsigned table_size(void) {
    char text[4096];
    const int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) {
        syscall(SYS_close, fd);
    }
    text[n > 0 ? n : 0] = 0;
    const char *line = strstr(text, "\nFDSize:");
    return line ? (unsigned)strtoul(line + strlen("\nFDSize:"), NULL, 10) : 0;
}

/* To close a range, the kernel walks its table to the end, including numbers that are not open.
 * The fewer numbers are left in it, the faster this is. */
static unsigned fill_until(unsigned first_free) {
    struct rlimit limit;
    const unsigned size = table_size();
    if (size > FILLED_MAX || size < first_free + SPARE || getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
        limit.rlim_cur < size + LIMIT_LEFT_MIN) {
        return first_free;
    }
    return size - SPARE;
}

/* Takes the free numbers between the open ones, so that all descriptors of a request are above. */
static bool fill_gaps(kept_state *s, int filler) {
    for (int fd = 0; fd < DESCRIPTORS_MAX; fd++) {
        if (samovar_set_has(&s->open, fd)) {
            s->first_free = (unsigned)fd + 1;
        }
    }
    if (s->first_free > FILLED_MAX) {
        return false;
    }
    s->first_free = fill_until(s->first_free);
    for (unsigned fd = 0; fd < s->first_free; fd++) {
        if (!samovar_set_has(&s->open, (int)fd)) {
            if (fcntl(filler, F_DUPFD_CLOEXEC, (int)fd) != (int)fd) {
                return false;
            }
            samovar_set_add(&s->open, (int)fd);
        }
    }
    return s->first_free > 0 && syscall(SYS_close_range, s->first_free, ~0U, 0) == 0;
}

/* ---- after a request ----------------------------------------------------------------------- */

static void close_new_descriptors(const kept_state *s) {
    samovar_must(syscall(SYS_close_range, s->first_free, ~0U, 0) == 0, LEAVE_DESCRIPTOR);
}

static void unlock(int fd, off_t from, off_t to) {
    const struct flock range = {.l_type = F_UNLCK,
                                .l_whence = SEEK_SET,
                                .l_start = from,
                                .l_len = to == INT64_MAX ? 0 : to - from + 1};
    fcntl(fd, F_SETLK, &range);
}

/* Releases locks that the request has left. SQLite keeps one of its own on a database in WAL
 * mode. */
static void restore_locks(const kept_descriptor *k) {
    const bool has_range = k->locked_from <= k->locked_to;
    if (!has_range || k->locked_from > 0) {
        unlock(k->fd, 0, has_range ? k->locked_from - 1 : INT64_MAX);
    }
    if (has_range && k->locked_to < INT64_MAX) {
        unlock(k->fd, k->locked_to + 1, INT64_MAX);
    }
    if (k->locks == 0) {
        syscall(SYS_flock, k->fd, LOCK_UN);
    }
}

/* closedir(), pclose() and fclose() close a descriptor inside libc. */
bool samovar_put_back_are_known(const kept_state *s) {
    struct stat info;
    for (uint32_t i = 0; i < s->known_count; i++) {
        const known_descriptor *k = &s->known[i];
        if (fstat(k->fd, &info) != 0 || info.st_dev != k->device || info.st_ino != k->inode ||
            (fcntl(k->fd, F_GETFL) & O_ACCMODE) != k->access ||
            (k->is_copy && info.st_mtim.tv_sec != 0)) {
            return false;
        }
    }
    return true;
}

static void restore_files(const kept_state *s) {
    for (uint32_t i = 0; i < s->count; i++) {
        const kept_descriptor *k = &s->list[i];
        samovar_must(k->flags & O_PATH || fcntl(k->fd, F_SETFL, k->flags) == 0, LEAVE_DESCRIPTOR);
        if (k->offset >= 0) {
            samovar_must(lseek(k->fd, k->offset, SEEK_SET) == k->offset, LEAVE_DESCRIPTOR);
            restore_locks(k);
        }
    }
}

/* Leaves if the boot's own locks have changed: the request has closed a descriptor of the same
 * file, which releases a process's locks, or has called flock(). */
static void verify_locks(const kept_state *s) {
    for (uint32_t i = 0; i < s->count; i++) {
        const kept_descriptor *k = &s->list[i];
        if (k->locks != 0 && samovar_locks_in_short(k->fd) != k->locks) {
            samovar_leave_for(LEAVE_LOCK);
        }
    }
}

/* Drops responses that no request has waited for. */
static void drop_datagrams(int fd) {
    char byte;
    for (int i = 0; i < DATAGRAMS_MAX; i++) {
        if (syscall(SYS_recvfrom, fd, &byte, sizeof byte, MSG_DONTWAIT, NULL, NULL) < 0) {
            return;
        }
    }
}

/* Returns true if the connection is open, has no unread data, and its peer is still there. */
static bool is_quiet(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLIN | POLLRDHUP};
    return syscall(SYS_ppoll, &p, 1, &(struct timespec){0}, NULL, 0) == 0;
}

bool samovar_put_back_are_quiet(const kept_state *s) {
    for (uint32_t i = 0; i < s->count; i++) {
        const kept_descriptor *k = &s->list[i];
        if (k->kind == KEPT_DATAGRAM) {
            drop_datagrams(k->fd);
        } else if (k->kind == KEPT_CONNECTION && !is_quiet(k->fd)) {
            return false;
        }
    }
    return true;
}

/* ---- start and end ------------------------------------------------------------------------- */

bool samovar_put_back_begin(kept_state *s, int filler) {
    return note_descriptors(s) && fill_gaps(s, filler);
}

void samovar_put_back(const kept_state *s) {
    close_new_descriptors(s);
    restore_files(s);
    verify_locks(s);
}
