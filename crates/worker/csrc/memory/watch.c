/* Detects writes to pages with the kernel's help: userfaultfd in its asynchronous mode (Linux
 * 6.7). A write to a watched page costs a third of a write to a dropped page, and a page that is
 * not written costs nothing. PAGEMAP_SCAN (search.c) then finds it among the written pages.
 *
 * If the kernel is older, or does not permit it, rarely written pages are dropped. */
#define _GNU_SOURCE
#include "memory/watch.h"
#include "leave.h"
#include "memory/image.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From linux/userfaultfd.h of later kernels. */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#define FEATURE_WP_ASYNC ((uint64_t)1 << 15)

/* Uses system calls, as all of this folder does: no interposed function counts it as a
 * request's. */
void samovar_watch_open(watch_state *w) {
    w->works = false;
    w->count = 0;
    w->fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    struct uffdio_api api = {.api = UFFD_API, .features = FEATURE_WP_ASYNC};
    if (w->fd >= 0 &&
        (syscall(SYS_ioctl, w->fd, UFFDIO_API, &api) != 0 || !(api.features & FEATURE_WP_ASYNC))) {
        syscall(SYS_close, w->fd);
        w->fd = -1;
    }
}

/* All regions or none: the state of a page does not include its region. */
void samovar_watch_start(watch_state *w) {
    for (uint32_t i = 0; w->fd >= 0 && i < samovar_image->region_count; i++) {
        const image_region *r = &samovar_image->regions[i];
        struct uffdio_register whole = {.range = {(uintptr_t)r->at, r->len},
                                        .mode = UFFDIO_REGISTER_MODE_WP};
        if (syscall(SYS_ioctl, w->fd, UFFDIO_REGISTER, &whole) != 0) {
            return;
        }
    }
    w->works = w->fd >= 0;
}

static void protect(const watch_state *w, char *from, const char *to, uint64_t mode) {
    struct uffdio_writeprotect pages = {.range = {(uintptr_t)from, (uint64_t)(to - from)},
                                        .mode = mode};
    samovar_must(syscall(SYS_ioctl, w->fd, UFFDIO_WRITEPROTECT, &pages) == 0, LEAVE_MAPPING);
}

/* If other code closes the descriptor with a system call of its own, the watch ends, and writes
 * would go unnoticed. Only a userfaultfd returns EINVAL for a request to wake nothing. */
void samovar_watch_verify(const watch_state *w) {
    struct uffdio_range nothing = {0};
    if (w->count > 0) {
        const long result = syscall(SYS_ioctl, w->fd, UFFDIO_WAKE, &nothing);
        samovar_must(result != 0 && errno == EINVAL, LEAVE_MAPPING);
    }
}

void samovar_watch(watch_state *w, char *from, const char *to) {
    if (from < to) {
        w->count += (uint32_t)((size_t)(to - from) / IMAGE_PAGE);
        protect(w, from, to, UFFDIO_WRITEPROTECT_MODE_WP);
    }
}

void samovar_unwatch(watch_state *w, char *from, const char *to) {
    if (from < to) {
        w->count -= (uint32_t)((size_t)(to - from) / IMAGE_PAGE);
        protect(w, from, to, 0);
    }
}

static void change_next(const watch_state *w, page_run *run, char *page, uint64_t mode) {
    if (page == NULL || page != run->end) {
        if (run->from < run->end) {
            protect(w, run->from, run->end, mode);
        }
        run->from = page;
    }
    run->end = page ? page + IMAGE_PAGE : NULL;
}

void samovar_watch_next(watch_state *w, page_run *run, char *page) {
    w->count += page != NULL;
    change_next(w, run, page, UFFDIO_WRITEPROTECT_MODE_WP);
}

void samovar_unwatch_next(watch_state *w, page_run *run, char *page) {
    w->count -= page != NULL;
    change_next(w, run, page, 0);
}
