/* Mappings that a request makes and removes beyond the image (a large file, a locale, a module
 * of iconv), and their removal after the request.
 *
 * Most of them are reported by the interposed functions of libc (interpose/memory.c) and known
 * by their address. Mappings that libc makes internally are not reported. The number of all
 * pages shows whether there are some; /proc/self/maps shows where they are. */
#define _GNU_SOURCE
#include "memory/mappings.h"
#include "boundary.h"
#include "leave.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    CHECK_EVERY = 64, /* rollbacks between two checks for changes that were not reported */
    MAPS_BYTES_MAX = 4 << 20
};

/* In shared memory: the check must not change the memory that it checks. */
static char *maps_text;

/* ---- all mappings -------------------------------------------------------------------------- */

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

/* Reads the next mapping of `text`; neighbours count as one. Skips the stack, which grows
 * automatically. */
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

static bool note_mappings(mappings_state *s) {
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

/* Unmaps [from, to), which was not mapped at the start. Nothing else is ever mapped there. So
 * the next time that there is an unreported mapping, this range may be unmapped without a check. */
static void unmap_new(mappings_state *s, uintptr_t from, uintptr_t to) {
    samovar_must(syscall(SYS_munmap, from, to - from) == 0, LEAVE_MAPPING);
    for (uint32_t i = 0; i < s->unseen_count; i++) {
        if (s->unseen[i].from <= from && to <= s->unseen[i].to) {
            return;
        }
    }
    s->unseen[s->unseen_next] = (address_range){from, to};
    s->unseen_next = (s->unseen_next + 1) % UNSEEN_MAX;
    s->unseen_count += s->unseen_count < UNSEEN_MAX;
}

/* Unmaps the parts of `now` that were not mapped at the start. Returns the number of bytes that
 * were. `at` is the first base range that may matter, and is moved forward. */
static size_t restore_mapping(mappings_state *s, const address_range *now, uint32_t *at) {
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

/* Restores all mappings. Returns false if one of the image is gone. */
static bool restore_all_mappings(mappings_state *s) {
    const char *text = read_maps();
    address_range now;
    uint32_t at = 0;
    size_t covered = 0;
    while (text && next_mapping(&text, &now)) {
        covered += restore_mapping(s, &now, &at);
    }
    return text && covered == s->base_bytes;
}

static uint64_t vm_pages(const mappings_state *s) {
    char text[128];
    ssize_t n = pread(s->statm, text, sizeof text - 1, 0);
    if (n <= 0) {
        return 0;
    }
    text[n] = 0;
    return strtoull(text, NULL, 10);
}

static void unmap_known(mappings_state *s) {
    for (uint32_t i = 0; i < s->made_count; i++) {
        if (s->made[i].len > 0) {
            samovar_must(syscall(SYS_munmap, s->made[i].at, s->made[i].len) == 0, LEAVE_MAPPING);
        }
    }
    s->made_count = 0;
    const char *brk = sbrk(0), *wanted = samovar_image->brk;
    /* Either memory of the image was given back, or the kernel takes no memory back. */
    samovar_must(brk >= wanted, LEAVE_MAPPING);
    samovar_must(brk == wanted || (char *)syscall(SYS_brk, wanted) == wanted, LEAVE_MAPPING);
}

/* Mappings that libc makes internally (a locale, a module of iconv) usually come back at the
 * same address. */
static bool unmap_unseen(mappings_state *s) {
    for (uint32_t i = 0; i < s->unseen_count; i++) {
        samovar_must(syscall(SYS_munmap, s->unseen[i].from, s->unseen[i].to - s->unseen[i].from) ==
                         0,
                     LEAVE_MAPPING);
    }
    return s->unseen_count > 0 && vm_pages(s) == s->vm_pages;
}

void samovar_mappings_restore(mappings_state *s, bool touched, uint64_t rollback) {
    unmap_known(s);
    const bool look = touched || s->unknown || rollback % CHECK_EVERY == 0;
    if (look && (s->unknown || (vm_pages(s) != s->vm_pages && !unmap_unseen(s)))) {
        samovar_must(restore_all_mappings(s), LEAVE_MAPPING);
        s->vm_pages = vm_pages(s);
    }
    s->unknown = false;
}

/* ---- the start ----------------------------------------------------------------------------- */

bool samovar_mappings_open(mappings_state *s) {
    maps_text = samovar_shared_memory(MAPS_BYTES_MAX);
    s->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    return maps_text && s->statm >= 0;
}

bool samovar_mappings_settle(mappings_state *s) {
    s->made_count = 0; /* Forgets those of our own start. */
    s->unknown = false;
    s->vm_pages = vm_pages(s);
    return note_mappings(s);
}

/* ---- reports of interposed functions ------------------------------------------------------- */

static size_t whole_pages(size_t len) {
    return (len + IMAGE_PAGE - 1) & ~((size_t)IMAGE_PAGE - 1);
}

void samovar_mappings_made(mappings_state *s, char *at, size_t len) {
    if (s->made_count == MAPPINGS_MAX) {
        s->unknown = true;
        return;
    }
    s->made[s->made_count].at = at;
    s->made[s->made_count++].len = whole_pages(len);
}

/* Removes [from, to) from mapping `i`. Returns the number of bytes that were part of it. */
static size_t cut(mappings_state *s, uint32_t i, char *from, char *to) {
    char *begin = s->made[i].at, *end = begin + s->made[i].len;
    from = from > begin ? from : begin;
    to = to < end ? to : end;
    if (from >= to) {
        return 0;
    }
    if (begin < from && to < end) {
        s->made[i].len = (size_t)(from - begin);
        samovar_mappings_made(s, to, (size_t)(end - to));
    } else if (begin < from) {
        s->made[i].len = (size_t)(from - begin);
    } else if (to < end) {
        s->made[i].at = to;
        s->made[i].len = (size_t)(end - to);
    } else {
        s->made[i] = s->made[--s->made_count];
    }
    return (size_t)(to - from);
}

bool samovar_mappings_had(const mappings_state *s, const void *at, size_t len) {
    const uintptr_t from = (uintptr_t)at, to = from + whole_pages(len);
    uint32_t low = 0, high = s->base_count; /* The ranges are sorted by address. */
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (s->base[middle].to <= from) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < s->base_count && s->base[low].from < to;
}

void samovar_mappings_gone(mappings_state *s, char *at, size_t len) {
    len = whole_pages(len);
    size_t known = 0;
    for (uint32_t i = s->made_count; i-- > 0;) {
        known += cut(s, i, at, at + len);
    }
    if (known < len) {
        s->unknown = true;
    }
}
