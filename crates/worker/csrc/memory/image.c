/* The image: every private writable mapping of the booted process, in a memory file.
 *
 * The copies are mapped back MAP_PRIVATE at their addresses. Processes forked from here on share
 * them, and a page that was never written costs nothing. The file is sealed: no worker can
 * change the state from which the others start. */
#define _GNU_SOURCE
#include "memory/image.h"
#include "boundary.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

enum {
    ASIDE_STACK_BYTES = 128 << 10,
    MAPS_BYTES_MAX = 8 << 20,
    CLUSTER_DISTANCE = 96 << 10, /* beyond it, two searches cost less than one */
    PAGEMAP_BATCH = 4096
};

image_table *samovar_image;

/* ---- memory outside of the image ----------------------------------------------------------- */

/* Uses system calls, so that no interposed function counts the memory as a request's. */
void *samovar_shared_memory(size_t len) {
    void *at = (void *)syscall(SYS_mmap, NULL, len, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

void samovar_shared_memory_end(void *at, size_t len) {
    syscall(SYS_munmap, at, len);
}

/* ---- the mappings -------------------------------------------------------------------------- */

typedef struct {
    uintptr_t from, to;
    unsigned long offset, inode;
    char flags[5];
    const char *name;
} mapping_line;

static char *read_whole(const char *path, char *to, size_t room) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return NULL;
    }
    size_t have = 0;
    ssize_t n = 0;
    while (have + 1 < room && (n = read(fd, to + have, room - have - 1)) > 0) {
        have += (size_t)n;
    }
    syscall(SYS_close, fd);
    to[have] = 0;
    return n == 0 ? to : NULL;
}

/* Parses "from-to rwxp offset dev inode   name". Returns false for a line of another kind. */
static bool parse_mapping(char *line, mapping_line *out) {
    char *at = line;
    out->from = strtoul(at, &at, 16);
    if (*at != '-') {
        return false;
    }
    out->to = strtoul(at + 1, &at, 16);
    if (*at != ' ' || strlen(at) < 6) {
        return false;
    }
    memcpy(out->flags, at + 1, 4);
    out->flags[4] = 0;
    out->offset = strtoul(at + 5, &at, 16);
    at = strchr(at + 1, ' '); /* past the device */
    if (!at) {
        return false;
    }
    out->inode = strtoul(at, &at, 10);
    out->name = at + strspn(at, " ");
    return true;
}

static bool is_part(const mapping_line *m) {
    return memcmp(m->flags, "rw", 2) == 0 && m->flags[3] == 'p' &&
           strcmp(m->name, "[stack]") != 0 && strncmp(m->name, "[v", 2) != 0;
}

/* Flags of the kernel (man proc_pid_smaps). Droppable pages and pages that a fork wipes hold the
 * state of random generators, which must not return. The others are not ordinary memory. */
static bool is_special(const char *vm_flags) {
    const char *const special[] = {" dp", " wf", " dc", " io", " pf"};
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
        if (strstr(vm_flags, special[i])) {
            return true;
        }
    }
    return false;
}

static bool add_region(const mapping_line *m, image_table *t) {
    if (t->region_count == REGIONS_MAX) {
        return false;
    }
    int prot = PROT_READ | PROT_WRITE | (m->flags[2] == 'x' ? PROT_EXEC : 0);
    t->regions[t->region_count++] =
        (image_region){(char *)m->from, m->to - m->from, t->bytes, prot};
    t->bytes += m->to - m->from;
    return true;
}

/* True for anonymous regions, which have holes: pages that were never touched. */
static bool anonymous[REGIONS_MAX];

static const char *find_regions(image_table *t, char *text) {
    mapping_line current = {0};
    bool wanted = false;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next) {
            *next++ = 0;
        }
        mapping_line m;
        if (strncmp(line, "VmFlags:", 8) == 0) {
            if (wanted && !is_special(line + 8)) {
                anonymous[t->region_count % REGIONS_MAX] = current.inode == 0;
                if (!add_region(&current, t)) {
                    return "it has too many memory mappings";
                }
            }
            wanted = false;
        } else if (parse_mapping(line, &m)) {
            current = m;
            wanted = is_part(&m);
            if (strcmp(m.name, "[stack]") == 0) {
                t->stack_top = m.to;
            }
        }
    }
    return t->stack_top ? NULL : "cannot find its stack";
}

static void find_clusters(image_table *t) {
    for (uint32_t i = 0; i < t->region_count; i++) {
        const uintptr_t from = (uintptr_t)t->regions[i].at, to = from + t->regions[i].len;
        region_cluster *last = t->cluster_count ? &t->clusters[t->cluster_count - 1] : NULL;
        if (last &&
            (from - last->range.to < CLUSTER_DISTANCE || t->cluster_count == CLUSTERS_MAX)) {
            last->range.to = to;
            last->end = i + 1;
        } else {
            t->clusters[t->cluster_count++] = (region_cluster){{from, to}, i, i + 1};
        }
    }
}

bool samovar_image_has(const char *at, size_t len) {
    const image_table *t = samovar_image;
    for (uint32_t i = 0; i < t->region_count; i++) {
        if (at < t->regions[i].at + t->regions[i].len && at + len > t->regions[i].at) {
            return true;
        }
    }
    return false;
}

/* The regions are sorted by address. */
const image_region *samovar_region_of(const char *at) {
    const image_table *t = samovar_image;
    uint32_t low = 0, high = t->region_count;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (t->regions[middle].at + t->regions[middle].len <= at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < t->region_count && t->regions[low].at <= at ? &t->regions[low] : NULL;
}

/* ---- the copy ------------------------------------------------------------------------------ */

bool samovar_write_all(int file, const char *from, size_t len, off_t offset) {
    while (len > 0) {
        ssize_t n = pwrite(file, from, len, offset);
        if (n <= 0) {
            return false;
        }
        from += n;
        offset += n;
        len -= (size_t)n;
    }
    return true;
}

/* Bits 63 and 62: present, swapped (Documentation/admin-guide/mm/pagemap.rst). */
static bool is_touched(uint64_t entry) {
    return entry >> 62 != 0;
}

static bool copy_touched(int file, int pagemap, const image_region *r) {
    uint64_t entries[PAGEMAP_BATCH / 8];
    const size_t batch = sizeof entries / sizeof entries[0], pages = r->len / IMAGE_PAGE;
    for (size_t first = 0; first < pages; first += batch) {
        size_t n = pages - first < batch ? pages - first : batch;
        off_t at = (off_t)(((uintptr_t)r->at / IMAGE_PAGE + first) * 8);
        if (pread(pagemap, entries, n * 8, at) != (ssize_t)(n * 8)) {
            return false;
        }
        for (size_t i = 0, run; i < n; i += run) {
            run = 1;
            if (!is_touched(entries[i])) {
                continue;
            }
            while (i + run < n && is_touched(entries[i + run])) {
                run++;
            }
            size_t from = (first + i) * IMAGE_PAGE;
            if (!samovar_write_all(file, r->at + from, run * IMAGE_PAGE,
                                   (off_t)(r->offset + from))) {
                return false;
            }
        }
    }
    return true;
}

static const char *copy_regions(const image_table *t, int file, int pagemap) {
    for (uint32_t i = 0; i < t->region_count; i++) {
        const image_region *r = &t->regions[i];
        bool done = anonymous[i] ? copy_touched(file, pagemap, r)
                                 : samovar_write_all(file, r->at, r->len, (off_t)r->offset);
        if (!done) {
            return "cannot copy its memory (check the free memory)";
        }
    }
    return NULL;
}

/* Nothing here may change memory that is being replaced, except this function's stack. */
static bool map_back(const image_table *t, int file) {
    for (uint32_t i = 0; i < t->region_count; i++) {
        const image_region *r = &t->regions[i];
        if ((void *)syscall(SYS_mmap, r->at, r->len, r->prot, MAP_PRIVATE | MAP_FIXED, file,
                            r->offset) != r->at) {
            return i == 0;
        }
    }
    return true;
}

int samovar_memory_file(void) {
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    /* Executable, because PCRE keeps compiled patterns in private mappings. */
    int file = memfd_create("samovar-image", flags | MFD_EXEC);
    return file >= 0 ? file : memfd_create("samovar-image", flags);
}

/* A stack outside of the image. The stack of a fiber is part of the image, and would be replaced
 * under the running function. */
typedef struct {
    samovar_job *run;
    void *argument;
    ucontext_t caller, here;
    char stack[ASIDE_STACK_BYTES];
} aside;

static aside *volatile current; /* makecontext() passes only integers */

static void run_current(void) {
    current->run(current->argument);
}

bool samovar_run_aside(samovar_job *run, void *argument) {
    aside *job = samovar_shared_memory(sizeof *job);
    if (!job || getcontext(&job->here) != 0) {
        return false;
    }
    job->run = run;
    job->argument = argument;
    job->here.uc_stack.ss_sp = job->stack;
    job->here.uc_stack.ss_size = sizeof job->stack;
    job->here.uc_link = &job->caller;
    sigfillset(&job->here.uc_sigmask);
    makecontext(&job->here, run_current, 0);
    current = job;
    swapcontext(&job->caller, &job->here);
    syscall(SYS_munmap, current, sizeof *job);
    return true;
}

/* Data for the steps from the copy to the mapping back. */
typedef struct {
    image_table *table;
    int file, pagemap;
    const char *problem;
} taking;

static const char *take(image_table *t, int file, int pagemap) {
    if (ftruncate(file, (off_t)t->bytes) != 0) {
        return "cannot create its memory file";
    }
    t->brk = (void *)syscall(SYS_brk, 0);
    samovar_image = t; /* First, so that the copied memory contains it. */
    const char *problem = copy_regions(t, file, pagemap);
    if (problem) {
        return problem;
    }
    struct stat info;
    t->held_bytes = fstat(file, &info) == 0 ? (size_t)info.st_blocks * 512 : t->bytes;
    fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    void *view = (void *)syscall(SYS_mmap, NULL, t->bytes, PROT_READ, MAP_PRIVATE, file, 0);
    if (view == MAP_FAILED) {
        return "cannot map its memory file";
    }
    t->view = view;
    if (!map_back(t, file)) {
        _exit(70); /* Half replaced: no memory of this process can be trusted. */
    }
    return NULL;
}

static void take_aside(void *argument) {
    taking *job = argument;
    job->problem = take(job->table, job->file, job->pagemap);
}

const char *samovar_image_take(void) {
    image_table *t = samovar_shared_memory(sizeof *t);
    char *text = samovar_shared_memory(MAPS_BYTES_MAX);
    if (!t || !text) {
        return "out of memory";
    }
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), file = samovar_memory_file();
    const char *problem = pagemap < 0 ? "cannot read /proc/self/pagemap" : NULL;
    if (!problem && file < 0) {
        problem = "cannot create its memory file";
    }
    if (!problem && !read_whole("/proc/self/smaps", text, MAPS_BYTES_MAX)) {
        problem = "cannot read /proc/self/smaps";
    }
    if (!problem) {
        problem = find_regions(t, text);
    }
    if (!problem) {
        find_clusters(t);
        /* In shared memory: the image must not contain the state of its own creation. */
        taking *job = samovar_shared_memory(sizeof *job);
        problem = "out of memory";
        if (job) {
            *job = (taking){t, file, pagemap, problem};
            samovar_run_aside(take_aside, job);
            problem = job->problem;
            syscall(SYS_munmap, job, sizeof *job);
        }
    }
    if (problem) {
        samovar_image = NULL;
    }
    syscall(SYS_munmap, text, (size_t)MAPS_BYTES_MAX);
    if (pagemap >= 0) {
        syscall(SYS_close, pagemap);
    }
    if (file >= 0) {
        syscall(SYS_close, file);
    }
    return problem;
}
