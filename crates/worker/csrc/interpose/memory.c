/* mmap, munmap, mremap, shmat, shmdt, madvise, mprotect, mlock: memory beyond the image is
 * recorded, memory of the image stays. */
#define _GNU_SOURCE
#include "interpose/original.h"
#include "memory/arena.h"
#include "memory/hot.h"
#include "memory/mappings.h"
#include "memory/persistent.h"
#include "outside/boot.h"
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    FILE_BYTES_SMALL = 1 << 20,
    OWN_BYTES_SMALL = 64 << 10 /* for example a pattern that PCRE has compiled */
};

static void *raw_mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset) {
    return (void *)syscall(SYS_mmap, at, len, prot, flags, fd, offset);
}

/* Small mappings that are soon used as a whole. Without their pages, each fault would look like
 * a fault in the image. Data written to a shared file is not part of the process (the index of
 * SQLite's write-ahead log). */
static bool is_small(size_t len, int prot, int flags, int fd) {
    const int kind = flags & ~(MAP_DENYWRITE | MAP_EXECUTABLE | MAP_NORESERVE);
    if (fd >= 0 && kind == MAP_SHARED && prot == (PROT_READ | PROT_WRITE)) {
        return len <= OWN_BYTES_SMALL;
    }
    if (fd >= 0) {
        return prot == PROT_READ && len <= FILE_BYTES_SMALL &&
               (kind == MAP_PRIVATE || kind == MAP_SHARED);
    }
    return len <= OWN_BYTES_SMALL && prot & PROT_WRITE && kind == (MAP_PRIVATE | MAP_ANONYMOUS);
}

/* Maps memory with its pages. Their faults are known not to be faults of image pages, because no
 * signal handler runs in between. */
static void *filled_mmap(hot_state *s, void *at, size_t len, int prot, int flags, int fd,
                         off_t offset) {
    const uint64_t all = ~0ULL;
    uint64_t mask;
    if (syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, sizeof all) != 0) {
        return raw_mmap(at, len, prot, flags, fd, offset);
    }
    const long before = samovar_faults();
    void *result = raw_mmap(at, len, prot, flags | MAP_POPULATE, fd, offset);
    if (flags & MAP_SHARED && prot & PROT_WRITE && result != MAP_FAILED) {
        /* MAP_POPULATE maps the pages read-only, so as not to change a file for nothing. There
         * are none beyond the end of the file. */
        syscall(SYS_madvise, result, len, MADV_POPULATE_WRITE);
    }
    s->faults += samovar_faults() - before;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask);
    return result;
}

/* Memory that existed when the image was taken is gone or was replaced. A check of the mapped
 * addresses would not detect that. */
static void leave_if_base(const void *at, size_t len) {
    if (samovar_mappings_had(samovar_mappings_state(), at, len)) {
        samovar_persistent->leave = LEAVE_MAPPING;
    }
}

static void note_new_mapping(char *at, size_t len, int flags) {
    if (!(flags & MAP_FIXED)) {
        samovar_mappings_made(samovar_mappings_state(), at, len);
        return;
    }
    samovar_mappings_state()->unknown = true;
    leave_if_base(at, len);
}

void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset) {
    const bool rolls_back = samovar_persistent != NULL;
    samovar_arena_called_from(__builtin_return_address(0));
    if (rolls_back && prot == (PROT_READ | PROT_WRITE) && flags == (MAP_PRIVATE | MAP_ANONYMOUS) &&
        samovar_arena_is_caller(__builtin_return_address(0))) {
        void *block = samovar_arena_take(samovar_arena_state(), at, len);
        if (block) {
            return block;
        }
    }
    void *result = rolls_back && is_small(len, prot, flags, fd)
                       ? filled_mmap(samovar_hot_state(), at, len, prot, flags, fd, offset)
                       : raw_mmap(at, len, prot, flags, fd, offset);
    if (rolls_back && result != MAP_FAILED) {
        note_new_mapping(result, len, flags);
    }
    if (samovar_booting && result != MAP_FAILED && flags & MAP_SHARED && prot & PROT_WRITE) {
        samovar_boot_mapped(result, flags & MAP_ANONYMOUS ? -1 : fd);
    }
    return result;
}

void *mmap64(void *at, size_t len, int prot, int flags, int fd, off_t offset)
    __attribute__((alias("mmap")));

int munmap(void *at, size_t len) {
    if (samovar_persistent) {
        if (samovar_arena_give_back(samovar_arena_state(), at, len) || samovar_image_has(at, len)) {
            return 0; /* Memory of the image is needed again after the rollback: it stays. */
        }
        samovar_mappings_gone(samovar_mappings_state(), at, len);
        leave_if_base(at, len);
    }
    return (int)syscall(SYS_munmap, at, len);
}

void *mremap(void *at, size_t len, size_t new_len, int flags, ...) {
    va_list more;
    va_start(more, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(more, void *) : NULL;
    va_end(more);
    const bool rolls_back = samovar_persistent != NULL;
    if (rolls_back) {
        arena_state *arena = samovar_arena_state();
        const bool is_arena = samovar_arena_has(arena, at);
        if (is_arena && flags == 0 && samovar_arena_resize(arena, at, len, new_len)) {
            return at;
        }
        if (is_arena || samovar_image_has(at, len)) {
            errno = ENOMEM; /* The caller copies instead. */
            return MAP_FAILED;
        }
        samovar_mappings_state()->unknown = true;
    }
    void *result = (void *)syscall(SYS_mremap, at, len, new_len, flags, to);
    if (rolls_back && result != MAP_FAILED) {
        leave_if_base(at, len);
        leave_if_base(result, new_len);
    }
    return result;
}

/* Segments of System V. A segment that a request attaches and leaves is found like memory that
 * libc maps. */
void *shmat(int segment, const void *at, int flags) {
    if (samovar_persistent && flags & SHM_REMAP) {
        /* The memory there is gone, without a record. */
        samovar_persistent->leave = LEAVE_MAPPING;
    }
    return (void *)syscall(SYS_shmat, segment, at, flags);
}

/* A later check for a mapping at that address is not enough: the kernel tends to put the next
 * segment into the gap. */
int shmdt(const void *at) {
    if (samovar_persistent) {
        leave_if_base(at, 1);
    }
    return (int)syscall(SYS_shmdt, at);
}

/* Inside the image this would bring back the image's content, but the caller wants zeros. */
int madvise(void *at, size_t len, int advice) {
    if (samovar_image && advice == MADV_DONTNEED && samovar_image_has(at, len)) {
        memset(at, 0, len);
        return 0;
    }
    return (int)syscall(SYS_madvise, at, len, advice);
}

/* These changes are not undone, and later steps may fail because of them: a locked page cannot
 * be dropped, a protected page cannot be written. */
static void note_changed(const void *at, size_t len) {
    if (samovar_persistent && samovar_image_has(at, len)) {
        samovar_persistent->leave = LEAVE_MAPPING;
    }
}

int mprotect(void *at, size_t len, int prot) {
    note_changed(at, len);
    return (int)syscall(SYS_mprotect, at, len, prot);
}

int mlock(const void *at, size_t len) {
    note_changed(at, len);
    return (int)syscall(SYS_mlock, at, len);
}

int mlock2(const void *at, size_t len, unsigned flags) {
    note_changed(at, len);
    return (int)syscall(SYS_mlock2, at, len, flags);
}

int munlock(const void *at, size_t len) {
    note_changed(at, len);
    return (int)syscall(SYS_munlock, at, len);
}

/* Affects all existing mappings, or all future ones. */
int mlockall(int flags) {
    ORIGINAL(mlockall)
    samovar_note_irreversible(LEAVE_MAPPING);
    return original(flags);
}

int munlockall(void) {
    ORIGINAL(munlockall)
    samovar_note_irreversible(LEAVE_MAPPING);
    return original();
}
