/* What the kernel knows of the process, and its way back after a request: descriptors, mappings,
 * the heap's end, working directory, umask, signal dispositions, timers, locks, children.
 *
 * The usual request changes none of it, and pays for two system calls that say so: what libc's
 * functions were asked to change is noted by interpose.c, and only that is put back. What cannot be
 * put back ends the worker. */
#define _GNU_SOURCE
#include "image.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <dirent.h>
#include <unistd.h>

enum {
    CHECK_EVERY = 64, /* rollbacks between two looks at what cannot change unseen, but might */
    SIGNALS = 65,
    MAPS_BYTES_MAX = 4 << 20,
    CHILDREN_MAX = 1024, /* reaped in one go */
    FILLED_MAX = 512     /* descriptors of an image, free numbers between them included */
};

static struct sigaction dispositions[SIGNALS];
static char *maps_text;

/* ---- descriptors --------------------------------------------------------------------------- */

static bool is_open_at_start(const image_survivors *s, int fd) {
    return fd >= 0 && fd < DESCRIPTORS_MAX && (s->descriptors[fd / 64] >> (fd % 64) & 1);
}

static bool note_descriptors(image_survivors *s) {
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
            s->descriptors[fd / 64] |= 1ULL << (fd % 64);
        }
    }
    closedir(folder);
    return fits;
}

/* Free numbers between the open ones are taken, so that all that a request opens lies above. */
static bool fill_gaps(image_survivors *s) {
    for (int fd = 0; fd < DESCRIPTORS_MAX; fd++) {
        if (is_open_at_start(s, fd)) {
            s->first_free = (unsigned)fd + 1;
        }
    }
    if (s->first_free > FILLED_MAX) {
        return false;
    }
    for (unsigned fd = 0; fd < s->first_free; fd++) {
        if (!is_open_at_start(s, (int)fd)) {
            if (fcntl(s->cwd, F_DUPFD_CLOEXEC, (int)fd) != (int)fd) {
                return false;
            }
            s->descriptors[fd / 64] |= 1ULL << (fd % 64);
        }
    }
    return s->first_free > 0 && syscall(SYS_close_range, s->first_free, ~0U, 0) == 0;
}

static void close_new_descriptors(const image_survivors *s) {
    syscall(SYS_close_range, s->first_free, ~0U, 0);
}

static void unlock(int fd, off_t from, off_t to) {
    const struct flock range = {.l_type = F_UNLCK,
                                .l_whence = SEEK_SET,
                                .l_start = from,
                                .l_len = to == INT64_MAX ? 0 : to - from + 1};
    fcntl(fd, F_SETLK, &range);
}

/* Locks that the request has left. SQLite keeps one of its own on a database in WAL mode. */
static void restore_locks(const kept_descriptor *k) {
    if (k->locked_from > k->locked_to) {
        unlock(k->fd, 0, INT64_MAX);
        syscall(SYS_flock, k->fd, LOCK_UN);
        return;
    }
    if (k->locked_from > 0) {
        unlock(k->fd, 0, k->locked_from - 1);
    }
    if (k->locked_to < INT64_MAX) {
        unlock(k->fd, k->locked_to + 1, INT64_MAX);
    }
}

static void restore_files(image_survivors *s) {
    for (uint32_t i = 0; i < s->kept_count; i++) {
        const kept_descriptor *k = &s->kept[i];
        fcntl(k->fd, F_SETFL, k->flags);
        if (k->offset >= 0) {
            lseek(k->fd, k->offset, SEEK_SET);
            restore_locks(k);
        }
    }
}

/* Open, nothing unread, the other end still there. */
static bool is_quiet(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLIN | POLLRDHUP};
    return syscall(SYS_ppoll, &p, 1, &(struct timespec){0}, NULL, 0) == 0;
}

/* A conversation that stopped in the middle: the answer may come yet, and would be the next
 * request's. */
static bool are_at_rest(image_survivors *s) {
    bool at_rest = true;
    for (uint32_t i = 0; i < s->kept_count; i++) {
        kept_descriptor *k = &s->kept[i];
        at_rest &= !k->asked && !(k->used && s->unclean);
        k->asked = k->used = false;
    }
    return at_rest;
}

bool samovar_kernel_connections_live(image_survivors *s) {
    for (uint32_t i = 0; i < s->kept_count; i++) {
        if (s->kept[i].connection && !is_quiet(s->kept[i].fd)) {
            return false;
        }
    }
    return true;
}

/* ---- mappings ------------------------------------------------------------------------------ */

static char *read_maps(void) {
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) {
        return NULL;
    }
    size_t have = 0;
    ssize_t n = 0;
    while (have + 1 < MAPS_BYTES_MAX &&
           (n = syscall(SYS_read, fd, maps_text + have, MAPS_BYTES_MAX - have - 1)) > 0) {
        have += (size_t)n;
    }
    maps_text[have] = 0;
    syscall(SYS_close, fd);
    return n == 0 ? maps_text : NULL;
}

/* The next mapping of `text`; neighbours are one. The stack grows by itself and is left out. */
static bool next_mapping(const char **text, address_range *out) {
    bool any = false;
    while (**text) {
        char *at;
        uintptr_t from = strtoul(*text, &at, 16), to = strtoul(at + 1, &at, 16);
        const char *end = strchr(at, '\n');
        const char *line_end = end ? end : at + strlen(at);
        bool stack = line_end - at >= 7 && memcmp(line_end - 7, "[stack]", 7) == 0;
        if (!stack && any && from != out->to) {
            return true;
        }
        if (!stack) {
            *out = (address_range){any ? out->from : from, to};
            any = true;
        }
        *text = end ? end + 1 : line_end;
        if (stack && any) {
            return true;
        }
    }
    return any;
}

static bool note_mappings(image_survivors *s) {
    const char *text = read_maps();
    address_range range;
    s->base_count = 0;
    while (text && next_mapping(&text, &range)) {
        if (s->base_count == REGIONS_MAX) {
            return false;
        }
        s->base[s->base_count++] = range;
        s->base_bytes += range.to - range.from;
    }
    return text != NULL;
}

static bool is_chunk(const image_survivors *s, uintptr_t from, uintptr_t *to) {
    for (uint32_t i = 0; i < s->chunk_count; i++) {
        const uintptr_t chunk = (uintptr_t)s->chunks[i].at;
        if (from >= chunk && from < chunk + SAMOVAR_CHUNK_BYTES) {
            *to = chunk + SAMOVAR_CHUNK_BYTES;
            return true;
        }
    }
    return false;
}

/* [from, to) was not there at the start: unmaps it, but for the chunks that are kept. */
static void unmap_new(const image_survivors *s, uintptr_t from, uintptr_t to) {
    while (from < to) {
        uintptr_t end = to;
        if (is_chunk(s, from, &end)) {
            from = end;
            continue;
        }
        for (uint32_t i = 0; i < s->chunk_count; i++) {
            const uintptr_t chunk = (uintptr_t)s->chunks[i].at;
            if (chunk > from && chunk < end) {
                end = chunk;
            }
        }
        syscall(SYS_munmap, from, end - from);
        from = end;
    }
}

/* Unmaps what of `now` was not there at the start; returns how many bytes were. `at`: the first
 * base range that may matter, moved on. */
static size_t restore_mapping(const image_survivors *s, const address_range *now, uint32_t *at) {
    uintptr_t from = now->from;
    size_t covered = 0;
    while (from < now->to) {
        while (*at < s->base_count && s->base[*at].to <= from) {
            ++*at;
        }
        const address_range *base = *at < s->base_count ? &s->base[*at] : NULL;
        if (!base || base->from >= now->to) {
            unmap_new(s, from, now->to);
            break;
        }
        if (base->from > from) {
            unmap_new(s, from, base->from);
            from = base->from;
        }
        const uintptr_t to = base->to < now->to ? base->to : now->to;
        covered += to - from;
        from = to;
    }
    return covered;
}

/* All mappings as they were; false: one of the image's is gone. */
static bool restore_all_mappings(const image_survivors *s) {
    const char *text = read_maps();
    address_range now;
    uint32_t at = 0;
    size_t covered = 0;
    while (text && next_mapping(&text, &now)) {
        covered += restore_mapping(s, &now, &at);
    }
    return text && covered == s->base_bytes;
}

static uint64_t vm_pages(const image_survivors *s) {
    char text[128];
    ssize_t n = pread(s->statm, text, sizeof text - 1, 0);
    if (n <= 0) {
        return 0;
    }
    text[n] = 0;
    return strtoull(text, NULL, 10);
}

static void drop_idle_chunks(image_survivors *s) {
    /* One of those that the last requests did not need. */
    if (s->chunk_count > s->chunks_used && s->rollbacks % CHECK_EVERY == 0) {
        syscall(SYS_munmap, s->chunks[--s->chunk_count].at, (size_t)SAMOVAR_CHUNK_BYTES);
    }
    if (s->rollbacks % CHECK_EVERY == 0) {
        s->chunks_used = 0;
    }
    for (uint32_t i = 0; i < s->chunk_count; i++) {
        s->chunks[i].used = false;
    }
}

/* `touched`: the request has made the kernel map something, as far as page faults tell. */
static void restore_mappings(image_survivors *s, bool touched) {
    for (uint32_t i = 0; i < s->mapping_count; i++) {
        if (s->mappings[i].len > 0) {
            syscall(SYS_munmap, s->mappings[i].at, s->mappings[i].len);
        }
    }
    s->mapping_count = 0;
    const char *brk = sbrk(0), *wanted = samovar_image->brk;
    if (brk < wanted) {
        samovar_leave_for(LEAVE_MAPPING); /* Memory of the image was given back. */
    }
    if (brk > wanted) {
        syscall(SYS_brk, wanted);
    }
    drop_idle_chunks(s);
    if (!touched && !s->unknown_mappings && s->rollbacks % CHECK_EVERY != 0) {
        return;
    }
    const uint64_t expected = s->vm_pages + s->chunk_count * (SAMOVAR_CHUNK_BYTES / IMAGE_PAGE);
    if (s->unknown_mappings || vm_pages(s) != expected) {
        if (!restore_all_mappings(s)) {
            samovar_leave_for(LEAVE_MAPPING);
        }
        s->vm_pages = vm_pages(s) - s->chunk_count * (SAMOVAR_CHUNK_BYTES / IMAGE_PAGE);
        s->unknown_mappings = false;
    }
}

/* ---- the process --------------------------------------------------------------------------- */

static void note_signals(void) {
    for (int i = 1; i < SIGNALS; i++) {
        syscall(SYS_rt_sigaction, i, NULL, &dispositions[i], 8);
    }
}

/* Signals that a request has blocked and not taken: they were sent to it. */
static void drop_pending_signals(void) {
    sigset_t all;
    sigfillset(&all);
    for (int i = 0; i < SIGNALS; i++) {
        if (syscall(SYS_rt_sigtimedwait, &all, NULL, &(struct timespec){0}, 8) < 0) {
            return;
        }
    }
}

static void restore_signals(void) {
    for (int i = 1; i < SIGNALS; i++) {
        syscall(SYS_rt_sigaction, i, &dispositions[i], NULL, 8);
    }
}

static void stop_timers(void) {
    const struct itimerval off = {0};
    syscall(SYS_setitimer, ITIMER_REAL, &off, NULL);
    syscall(SYS_setitimer, ITIMER_VIRTUAL, &off, NULL);
}

/* Those that have ended are nobody's any more; one that has not would be met by the next request.
 */
static void reap(image_survivors *s) {
    if (s->has_children) {
        return;
    }
    for (int i = 0; i < CHILDREN_MAX; i++) {
        int pid = waitpid(-1, NULL, WNOHANG | __WALL);
        if (pid < 0) {
            return;
        }
        if (pid == 0) {
            s->leave = LEAVE_CHILD;
            return;
        }
    }
    s->leave = LEAVE_CHILD;
}

static bool has_other_threads(void) {
    struct stat task;
    /* ".", ".." and one entry per thread. */
    return stat("/proc/self/task", &task) != 0 || task.st_nlink > 3;
}

static mode_t current_umask(void) {
    mode_t mask = (mode_t)syscall(SYS_umask, 077);
    syscall(SYS_umask, mask);
    return mask;
}

bool samovar_kernel_start(image_survivors *s) {
    maps_text = samovar_shared_memory(MAPS_BYTES_MAX);
    s->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    s->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    s->cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    s->umask = current_umask();
    note_signals();
    siginfo_t child;
    s->has_children = waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0;
    samovar_survey_kept(s);
    return maps_text && s->cwd >= 0 && s->pagemap >= 0 && s->statm >= 0 && note_descriptors(s) &&
           fill_gaps(s);
}

static void forget_notes(image_survivors *s) {
    s->leave = LEAVE_NOT;
    s->cwd_changed = s->umask_changed = s->signals_changed = s->timers_changed = false;
    s->mask_changed = false;
    s->threads_started = s->unknown_mappings = false;
    s->mapping_count = 0;
    s->semaphores = 0;
}

/* When all of the worker's own memory is there. */
bool samovar_kernel_settle(image_survivors *s) {
    forget_notes(s); /* Those of our own start. */
    s->vm_pages = vm_pages(s);
    return note_mappings(s);
}

void samovar_kernel_restore(image_survivors *s, bool touched) {
    if (!are_at_rest(s) || !samovar_kernel_connections_live(s)) {
        s->leave = LEAVE_CONNECTION;
    }
    reap(s);
    if (s->semaphores != 0) {
        s->leave = LEAVE_LOCK; /* The kernel undoes it at this process's end. */
    }
    if (s->threads_started && has_other_threads()) {
        s->leave = LEAVE_THREAD;
    }
    if (s->leave != LEAVE_NOT) {
        samovar_leave_for(s->leave);
    }
    close_new_descriptors(s);
    restore_files(s);
    restore_mappings(s, touched);
    if (s->cwd_changed) {
        syscall(SYS_fchdir, s->cwd);
    }
    if (s->umask_changed) {
        syscall(SYS_umask, s->umask);
    }
    if (s->signals_changed) {
        restore_signals();
    }
    if (s->timers_changed) {
        stop_timers();
    }
    if (s->mask_changed || s->signals_changed) {
        drop_pending_signals();
    }
    forget_notes(s);
}
