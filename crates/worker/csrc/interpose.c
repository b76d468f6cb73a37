/* libc's functions that change what a rollback must put back: the originals, with a note.
 *
 * The dynamic linker finds these before libc's, for libphp and for every extension, because the
 * executable comes first in the search order; `dlopen` is here to keep it so (PHP loads extensions
 * with RTLD_DEEPBIND, which would search libc first). What libc calls inside itself is not seen:
 * kernel.c notices that by its effect.
 *
 * Until a worker rolls back, `samovar_survivors` is NULL and each is the original. */
#define _GNU_SOURCE
#include "image.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* ---- memory -------------------------------------------------------------------------------- */

static bool is_chunk_request(const void *at, size_t len, int prot, int flags) {
    return !at && len == SAMOVAR_CHUNK_BYTES && prot == (PROT_READ | PROT_WRITE) &&
           flags == (MAP_PRIVATE | MAP_ANONYMOUS);
}

static void note_mapping(image_survivors *s, char *at, size_t len) {
    if (s->mapping_count == MAPPINGS_MAX) {
        s->unknown_mappings = true;
        return;
    }
    s->mappings[s->mapping_count].at = at;
    s->mappings[s->mapping_count++].len = len;
}

static void *raw_mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset) {
    return (void *)syscall(SYS_mmap, at, len, prot, flags, fd, offset);
}

/* Aligned to its size, as the Zend heap wants it. */
static char *new_chunk(void) {
    const size_t size = SAMOVAR_CHUNK_BYTES;
    char *wide =
        raw_mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (wide == MAP_FAILED) {
        return NULL;
    }
    char *chunk = (char *)(((uintptr_t)wide + size - 1) & ~(uintptr_t)(size - 1));
    if (chunk > wide) {
        syscall(SYS_munmap, wide, (size_t)(chunk - wide));
    }
    if (chunk < wide + size) {
        syscall(SYS_munmap, chunk + size, (size_t)(wide + size - chunk));
    }
    return chunk;
}

/* A chunk that an earlier request has left, or a new one. A used one holds old data, but for its
 * first page: the Zend heap takes that to be zero and nothing else. */
static char *take_chunk(image_survivors *s) {
    for (uint32_t i = 0; i < s->chunk_count; i++) {
        if (!s->chunks[i].used) {
            s->chunks[i].used = true;
            s->chunks_used = i + 1 > s->chunks_used ? i + 1 : s->chunks_used;
            memset(s->chunks[i].at, 0, IMAGE_PAGE);
            return s->chunks[i].at;
        }
    }
    char *chunk = s->chunk_count < CHUNKS_MAX ? new_chunk() : NULL;
    if (chunk) {
        s->chunks[s->chunk_count].at = chunk;
        s->chunks[s->chunk_count++].used = true;
        s->chunks_used = s->chunk_count;
    }
    return chunk;
}

void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset) {
    image_survivors *s = samovar_survivors;
    if (s && is_chunk_request(at, len, prot, flags)) {
        char *chunk = take_chunk(s);
        if (chunk) {
            return chunk;
        }
    }
    void *result = raw_mmap(at, len, prot, flags, fd, offset);
    if (s && result != MAP_FAILED) {
        if (flags & MAP_FIXED) {
            s->unknown_mappings = true;
        } else {
            note_mapping(s, result, len);
        }
    }
    return result;
}

void *mmap64(void *at, size_t len, int prot, int flags, int fd, off_t offset)
    __attribute__((alias("mmap")));

static bool is_chunk_of_ours(image_survivors *s, const char *at, size_t len) {
    for (uint32_t i = 0; i < s->chunk_count; i++) {
        if (s->chunks[i].at == at && len == SAMOVAR_CHUNK_BYTES) {
            s->chunks[i].used = false;
            return true;
        }
    }
    return false;
}

/* Memory of the image is needed again after the rollback: it stays. */
static bool is_images(const char *at, size_t len) {
    const image_table *t = samovar_image;
    for (uint32_t i = 0; i < t->region_count; i++) {
        if (at < t->regions[i].at + t->regions[i].len && at + len > t->regions[i].at) {
            return true;
        }
    }
    return false;
}

/* What is left of mapping `i` when [from, to) is gone; returns how many bytes of it were. */
static size_t cut(image_survivors *s, uint32_t i, char *from, char *to) {
    char *begin = s->mappings[i].at, *end = begin + s->mappings[i].len;
    from = from > begin ? from : begin;
    to = to < end ? to : end;
    if (from >= to) {
        return 0;
    }
    if (begin < from && to < end) {
        s->mappings[i].len = (size_t)(from - begin);
        note_mapping(s, to, (size_t)(end - to));
    } else if (begin < from) {
        s->mappings[i].len = (size_t)(from - begin);
    } else if (to < end) {
        s->mappings[i].at = to;
        s->mappings[i].len = (size_t)(end - to);
    } else {
        s->mappings[i] = s->mappings[--s->mapping_count];
    }
    return (size_t)(to - from);
}

static void forget_mapping(image_survivors *s, char *at, size_t len) {
    size_t known = 0;
    for (uint32_t i = s->mapping_count; i-- > 0;) {
        known += cut(s, i, at, at + len);
    }
    if (known < len) {
        s->unknown_mappings = true;
    }
}

int munmap(void *at, size_t len) {
    image_survivors *s = samovar_survivors;
    if (s) {
        if (is_chunk_of_ours(s, at, len) || is_images(at, len)) {
            return 0;
        }
        forget_mapping(s, at, len);
    }
    return (int)syscall(SYS_munmap, at, len);
}

void *mremap(void *at, size_t len, size_t new_len, int flags, ...) {
    va_list more;
    va_start(more, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(more, void *) : NULL;
    va_end(more);
    image_survivors *s = samovar_survivors;
    if (s) {
        if (is_images(at, len)) {
            errno = ENOMEM; /* The caller copies. */
            return MAP_FAILED;
        }
        s->unknown_mappings = true;
    }
    return (void *)syscall(SYS_mremap, at, len, new_len, flags, to);
}

/* In the image this would bring back the image's content, where the caller wants zeros. */
int madvise(void *at, size_t len, int advice) {
    if (samovar_image && advice == MADV_DONTNEED && is_images(at, len)) {
        memset(at, 0, len);
        return 0;
    }
    return (int)syscall(SYS_madvise, at, len, advice);
}

/* ---- descriptors --------------------------------------------------------------------------- */

static void note_lost(int fd) {
    image_survivors *s = samovar_survivors;
    if (s && fd >= 0 && fd < DESCRIPTORS_MAX && (s->descriptors[fd / 64] >> (fd % 64) & 1)) {
        s->leave = LEAVE_DESCRIPTOR;
    }
}

int close(int fd) {
    note_lost(fd);
    return (int)syscall(SYS_close, fd);
}

int dup3(int from, int to, int flags) {
    note_lost(to);
    return (int)syscall(SYS_dup3, from, to, flags);
}

int dup2(int from, int to) {
    if (from == to) {
        return fcntl(from, F_GETFD) < 0 ? -1 : to;
    }
    return dup3(from, to, 0);
}

/* Files below /proc are the process's own settings: its name, its limits, its weight. */
static void note_opened(const char *path, int flags) {
    if (samovar_survivors && (flags & O_ACCMODE) != O_RDONLY && strncmp(path, "/proc/", 6) == 0) {
        samovar_survivors->leave = LEAVE_PRIVILEGES;
    }
}

static mode_t mode_of(int flags, va_list more) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
}

int open(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = mode_of(flags, more);
    va_end(more);
    note_opened(path, flags);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    samovar_survey_note(fd);
    return fd;
}

int openat(int folder, const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = mode_of(flags, more);
    va_end(more);
    note_opened(path, flags);
    int fd = (int)syscall(SYS_openat, folder, path, flags, mode);
    samovar_survey_note(fd);
    return fd;
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));
int openat64(int folder, const char *path, int flags, ...) __attribute__((alias("openat")));

int socket(int domain, int type, int protocol) {
    int fd = (int)syscall(SYS_socket, domain, type, protocol);
    samovar_survey_note(fd);
    return fd;
}

int socketpair(int domain, int type, int protocol, int fds[2]) {
    int result = (int)syscall(SYS_socketpair, domain, type, protocol, fds);
    if (result == 0) {
        samovar_survey_note(fds[0]);
        samovar_survey_note(fds[1]);
    }
    return result;
}

/* Whether a conversation on a connection of the image is at rest: who spoke last. */
static kept_descriptor *kept(int fd) {
    image_survivors *s = samovar_survivors;
    for (uint32_t i = 0; s && i < s->kept_count; i++) {
        if (s->kept[i].fd == fd && s->kept[i].connection) {
            return &s->kept[i];
        }
    }
    return NULL;
}

static void note_asked(int fd) {
    kept_descriptor *k = kept(fd);
    if (k) {
        k->used = k->asked = true;
    }
}

static ssize_t note_answered(int fd, ssize_t n) {
    kept_descriptor *k = n > 0 ? kept(fd) : NULL;
    if (k) {
        k->asked = false;
    }
    return n;
}

ssize_t write(int fd, const void *from, size_t len) {
    note_asked(fd);
    return syscall(SYS_write, fd, from, len);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    note_asked(fd);
    return syscall(SYS_writev, fd, parts, count);
}

ssize_t sendto(int fd, const void *from, size_t len, int flags, __CONST_SOCKADDR_ARG to,
               socklen_t to_len) {
    note_asked(fd);
    return syscall(SYS_sendto, fd, from, len, flags, to, to_len);
}

ssize_t send(int fd, const void *from, size_t len, int flags) {
    note_asked(fd);
    return syscall(SYS_sendto, fd, from, len, flags, NULL, 0);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    note_asked(fd);
    return syscall(SYS_sendmsg, fd, message, flags);
}

ssize_t read(int fd, void *to, size_t room) {
    return note_answered(fd, syscall(SYS_read, fd, to, room));
}

ssize_t readv(int fd, const struct iovec *parts, int count) {
    return note_answered(fd, syscall(SYS_readv, fd, parts, count));
}

ssize_t recvfrom(int fd, void *to, size_t room, int flags, __SOCKADDR_ARG from,
                 socklen_t *from_len) {
    return note_answered(fd, syscall(SYS_recvfrom, fd, to, room, flags, from, from_len));
}

ssize_t recv(int fd, void *to, size_t room, int flags) {
    return note_answered(fd, syscall(SYS_recvfrom, fd, to, room, flags, NULL, NULL));
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
    return note_answered(fd, syscall(SYS_recvmsg, fd, message, flags));
}

int pipe(int fds[2]) {
    int result = (int)syscall(SYS_pipe2, fds, 0);
    if (result == 0) {
        samovar_survey_note(fds[0]);
        samovar_survey_note(fds[1]);
    }
    return result;
}

/* ---- the process --------------------------------------------------------------------------- */

#define NOTE(flag)                                                                                 \
    do {                                                                                           \
        if (samovar_survivors) {                                                                   \
            samovar_survivors->flag = true;                                                        \
        }                                                                                          \
    } while (0)

int chdir(const char *path) {
    NOTE(cwd_changed);
    return (int)syscall(SYS_chdir, path);
}

int fchdir(int fd) {
    NOTE(cwd_changed);
    return (int)syscall(SYS_fchdir, fd);
}

mode_t umask(mode_t mask) {
    NOTE(umask_changed);
    return (mode_t)syscall(SYS_umask, mask);
}

/* The others are called in libc; each once looked up. */
#define ORIGINAL(name)                                                                             \
    static __typeof__(name) *original;                                                             \
    if (!original) {                                                                               \
        original = (__typeof__(name) *)dlsym(RTLD_NEXT, #name);                                    \
    }

int sigaction(int number, const struct sigaction *action, struct sigaction *former) {
    ORIGINAL(sigaction)
    if (action) {
        NOTE(signals_changed);
    }
    return original(number, action, former);
}

int sigprocmask(int how, const sigset_t *set, sigset_t *former) {
    ORIGINAL(sigprocmask)
    NOTE(mask_changed);
    return original(how, set, former);
}

__sighandler_t signal(int number, __sighandler_t handler) {
    ORIGINAL(signal)
    NOTE(signals_changed);
    return original(number, handler);
}

unsigned alarm(unsigned seconds) {
    ORIGINAL(alarm)
    NOTE(timers_changed);
    samovar_survey_note(SURVEY_TIMER);
    return original(seconds);
}

int setitimer(__itimer_which_t which, const struct itimerval *value, struct itimerval *former) {
    if (which != ITIMER_PROF) {
        NOTE(timers_changed);
        samovar_survey_note(SURVEY_TIMER);
    } else if (samovar_survivors) {
        /* The time limit's, which PHP itself sets too: set_time_limit(), and after a time-out. */
        samovar_survivors->timer.known = false;
    }
    return (int)syscall(SYS_setitimer, which, value, former);
}

/* proc_open() starts its processes so since 8.4, where no handler of pthread_atfork() is called. */
int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) {
    ORIGINAL(posix_spawn)
    samovar_survey_note(SURVEY_CHILD);
    return original(pid, path, actions, attributes, argv, envp);
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) {
    ORIGINAL(posix_spawnp)
    samovar_survey_note(SURVEY_CHILD);
    return original(pid, file, actions, attributes, argv, envp);
}

/* The C library makes its pipe and its process where nothing of ours is called. */
FILE *popen(const char *command, const char *mode) {
    ORIGINAL(popen)
    FILE *stream = original(command, mode);
    if (stream) {
        samovar_survey_note(fileno(stream));
        samovar_survey_note(SURVEY_CHILD);
    }
    return stream;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg) {
    ORIGINAL(pthread_create)
    NOTE(threads_started);
    samovar_survey_note(SURVEY_THREAD);
    return original(thread, attr, run, arg);
}

/* Asked for by name (FFI), libc would answer for itself: the whole program does, ours first. */
static bool is_libc(const char *file) {
    const char *const names[] = {"libc.so.6", "libpthread.so.0", "librt.so.1"};
    const char *slash = file ? strrchr(file, '/') : NULL;
    for (size_t i = 0; file && i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(slash ? slash + 1 : file, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

void *dlopen(const char *file, int mode) {
    ORIGINAL(dlopen)
    if (is_libc(file) && !(mode & RTLD_NOLOAD)) {
        return original(NULL, mode & ~RTLD_DEEPBIND);
    }
    return original(file, mode & ~RTLD_DEEPBIND);
}

static void note_semaphores(const struct sembuf *operations, size_t count) {
    for (size_t i = 0; samovar_survivors && i < count; i++) {
        samovar_survivors->semaphores += operations[i].sem_op;
    }
}

int semop(int set, struct sembuf *operations, size_t count) {
    ORIGINAL(semop)
    int result = original(set, operations, count);
    if (result == 0) {
        note_semaphores(operations, count);
    }
    return result;
}

int semtimedop(int set, struct sembuf *operations, size_t count, const struct timespec *limit) {
    ORIGINAL(semtimedop)
    int result = original(set, operations, count, limit);
    if (result == 0) {
        note_semaphores(operations, count);
    }
    return result;
}

int timer_create(clockid_t clock, struct sigevent *event, timer_t *timer) {
    ORIGINAL(timer_create)
    if (samovar_survivors) {
        samovar_survivors->leave = LEAVE_TIMER;
    }
    return original(clock, event, timer);
}

/* What prctl() is asked to change, but for the names that the Zend heap gives its memory. */
static bool changes_process(int what) {
    const int changes[] = {
        PR_SET_PDEATHSIG, PR_SET_DUMPABLE,        PR_SET_KEEPCAPS,     PR_SET_NAME,
        PR_SET_SECCOMP,   PR_CAPBSET_DROP,        PR_SET_SECUREBITS,   PR_SET_TIMERSLACK,
        PR_SET_MM,        PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_SET_THP_DISABLE,
        PR_CAP_AMBIENT};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        if (changes[i] == what) {
            return true;
        }
    }
    return false;
}

int prctl(int what, ...) {
    va_list more;
    va_start(more, what);
    unsigned long a = va_arg(more, unsigned long), b = va_arg(more, unsigned long);
    unsigned long c = va_arg(more, unsigned long), d = va_arg(more, unsigned long);
    va_end(more);
    if (samovar_survivors && changes_process(what)) {
        samovar_survivors->leave = LEAVE_PRIVILEGES;
    }
    return (int)syscall(SYS_prctl, what, a, b, c, d);
}

/* What only a new process undoes. */
#define IRREVERSIBLE(type, name, parameters, arguments)                                            \
    type name parameters {                                                                         \
        ORIGINAL(name)                                                                             \
        if (samovar_survivors) {                                                                   \
            samovar_survivors->leave = LEAVE_PRIVILEGES;                                           \
        }                                                                                          \
        return original arguments;                                                                 \
    }

IRREVERSIBLE(int, setuid, (uid_t id), (id))
IRREVERSIBLE(int, seteuid, (uid_t id), (id))
IRREVERSIBLE(int, setreuid, (uid_t real, uid_t effective), (real, effective))
IRREVERSIBLE(int, setresuid, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved))
IRREVERSIBLE(int, setgid, (gid_t id), (id))
IRREVERSIBLE(int, setegid, (gid_t id), (id))
IRREVERSIBLE(int, setregid, (gid_t real, gid_t effective), (real, effective))
IRREVERSIBLE(int, setresgid, (gid_t real, gid_t effective, gid_t saved), (real, effective, saved))
IRREVERSIBLE(int, setpgid, (pid_t pid, pid_t group), (pid, group))
IRREVERSIBLE(pid_t, setsid, (void), ())
IRREVERSIBLE(int, setrlimit, (__rlimit_resource_t what, const struct rlimit *limit), (what, limit))
IRREVERSIBLE(int, initgroups, (const char *user, gid_t group), (user, group))
IRREVERSIBLE(int, setgroups, (size_t count, const gid_t *groups), (count, groups))
IRREVERSIBLE(int, setfsuid, (uid_t id), (id))
IRREVERSIBLE(int, setfsgid, (gid_t id), (id))
IRREVERSIBLE(int, sched_setscheduler, (pid_t pid, int policy, const struct sched_param *param),
             (pid, policy, param))
IRREVERSIBLE(int, chroot, (const char *path), (path))
IRREVERSIBLE(int, unshare, (int flags), (flags))
IRREVERSIBLE(int, nice, (int by), (by))
IRREVERSIBLE(int, setpriority, (__priority_which_t which, id_t who, int priority),
             (which, who, priority))
IRREVERSIBLE(int, sched_setaffinity, (pid_t pid, size_t size, const cpu_set_t *set),
             (pid, size, set))
