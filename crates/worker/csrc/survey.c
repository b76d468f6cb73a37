/* What the boot has left in the process that forks cannot share or a rollback cannot bring back.
 *
 * Each finding is reported with what to do about it, and names the fall-back that stays right: boot
 * in every worker, or run the whole script for every request. */
#define _GNU_SOURCE
#include "samovar.h"
#include "image.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { TEXT = 512, WHERE = 256, PLACES_MAX = 128 };

/* Descriptors that are the server's own, or PHP's before the application began. */
static uint64_t before[DESCRIPTORS_MAX / 64];
static bool surveying;

/* Which line of PHP opened what. */
static struct {
    int fd;
    char line[WHERE];
} places[PLACES_MAX];
static uint32_t place_count;

static bool was_there(int fd) {
    return fd < DESCRIPTORS_MAX && (before[fd / 64] >> (fd % 64) & 1);
}

typedef void visit_fd(int fd, void *data);

static void for_each_descriptor(visit_fd *visit, void *data) {
    DIR *folder = opendir("/proc/self/fd");
    if (!folder) {
        return;
    }
    for (const struct dirent *e; (e = readdir(folder));) {
        int fd = atoi(e->d_name);
        if (e->d_name[0] != '.' && fd != dirfd(folder)) {
            visit(fd, data);
        }
    }
    closedir(folder);
}

static void note_before(int fd, void *data) {
    (void)data;
    if (fd < DESCRIPTORS_MAX) {
        before[fd / 64] |= 1ULL << (fd % 64);
    }
}

void samovar_survey_begin(void) {
    memset(before, 0, sizeof before);
    for_each_descriptor(note_before, NULL);
    place_count = 0;
    surveying = true;
}

static uint32_t place_of(int fd) {
    uint32_t i = 0;
    while (i < place_count && places[i].fd != fd) {
        i++;
    }
    return i;
}

void samovar_survey_note(int fd) {
    if (!surveying || fd == -1 || !EG(current_execute_data)) {
        return;
    }
    const uint32_t i = place_of(fd);
    if (i == PLACES_MAX) {
        return;
    }
    place_count = MAX(place_count, i + 1);
    places[i].fd = fd;
    snprintf(places[i].line, WHERE, "%s:%u", zend_get_executed_filename(),
             zend_get_executed_lineno());
}

static const char *where(int fd) {
    const uint32_t i = place_of(fd);
    return i < place_count ? places[i].line : "";
}

/* ---- findings ------------------------------------------------------------------------------ */

static const char *const action_names[] = {"note", "worker", "script"};

static void report(int *fall, const char *kind, int action, const char *what, const char *line,
                   const char *advice) {
    samovar_finding(kind, action_names[action], what, line, advice);
    *fall = MAX(*fall, action);
}

static void name_of_socket(const struct sockaddr_storage *peer, char *to) {
    char address[INET6_ADDRSTRLEN] = "";
    if (peer->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)peer;
        inet_ntop(AF_INET, &in->sin_addr, address, sizeof address);
        snprintf(to, TEXT, "a connection to %s:%u", address, ntohs(in->sin_port));
    } else if (peer->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const void *)peer;
        inet_ntop(AF_INET6, &in->sin6_addr, address, sizeof address);
        snprintf(to, TEXT, "a connection to [%s]:%u", address, ntohs(in->sin6_port));
    } else {
        const struct sockaddr_un *un = (const void *)peer;
        snprintf(to, TEXT, "a connection to %s", un->sun_path[0] ? un->sun_path : "a unix socket");
    }
}

static bool is_socket_kind(int fd, int option) {
    int value = 0;
    socklen_t len = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 && value;
}

static bool is_connection(int fd, struct sockaddr_storage *peer) {
    socklen_t len = sizeof *peer;
    memset(peer, 0, sizeof *peer);
    return getpeername(fd, (struct sockaddr *)peer, &len) == 0;
}

/* Datagrams that need no answer: syslog's, statsd's. All may send on one socket. */
static bool is_datagram(int fd) {
    int type = 0;
    socklen_t len = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_DGRAM;
}

static void look_at_socket(int fd, int *fall) {
    struct sockaddr_storage peer;
    char what[TEXT];
    if (is_socket_kind(fd, SO_ACCEPTCONN)) {
        report(fall, "listener", FALL_SHARED, "a listening socket", where(fd),
               "all workers share it");
        return;
    }
    if (!is_connection(fd, &peer) || is_datagram(fd)) {
        return; /* Not connected: nothing that two processes could mix up. */
    }
    name_of_socket(&peer, what);
    if (samovar_live_tls() > 0) {
        report(fall, "tls", FALL_SCRIPT, what, where(fd),
               "an encrypted connection cannot return to an earlier state: open it below the "
               "checkpoint, or use a unix socket");
        return;
    }
    report(
        fall, "connection", FALL_WORKER, what, where(fd),
        "open it below the checkpoint: one above stops workers from sharing an image, and what a "
        "request sets on it (variables, temporary tables, locks) stays");
}

/* Kernel objects whose own state a rollback of memory does not reach. */
static bool is_stateful(const char *name) {
    const char *const kinds[] = {"eventpoll",   "timerfd",    "signalfd", "inotify", "io_uring",
                                 "userfaultfd", "perf_event", "bpf",      "fanotify"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strstr(name, kinds[i])) {
            return true;
        }
    }
    return false;
}

/* The range of bytes that the process has locked, all locks together; false: it has none. Lines of
 * man proc_pid_fdinfo: "lock: 1: POSIX ADVISORY READ pid device start end". */
static bool find_locks(int fd, off_t *from, off_t *to) {
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

static bool is_locked(int fd) {
    off_t from, to;
    return find_locks(fd, &from, &to);
}

static void name_of(int fd, char *to) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, to, TEXT - 1);
    to[n > 0 ? n : 0] = 0;
}

/* php://stderr is a copy of the server's own: a pipe in a container, a socket below systemd. All
 * workers share it, as they do without a checkpoint. */
static bool is_output(const struct stat *info) {
    struct stat standard;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fstat(fd, &standard) == 0 && standard.st_dev == info->st_dev &&
            standard.st_ino == info->st_ino) {
            return true;
        }
    }
    return false;
}

static uint32_t opened; /* descriptors that the boot has opened */

static void look_at_descriptor(int fd, void *data) {
    int *fall = data;
    struct stat info;
    char name[TEXT];
    if (was_there(fd) || fstat(fd, &info) != 0 || is_output(&info)) {
        return;
    }
    name_of(fd, name);
    if (++opened > KEPT_MAX) {
        if (opened == KEPT_MAX + 1) {
            report(fall, "image", FALL_SCRIPT, "more than 64 open descriptors", where(fd),
                   "close files above the checkpoint");
        }
    } else if (fd >= DESCRIPTORS_MAX) {
        report(fall, "kernel-object", FALL_SCRIPT, "a descriptor above 1023", where(fd),
               "open fewer files above the checkpoint");
    } else if (S_ISSOCK(info.st_mode)) {
        look_at_socket(fd, fall);
    } else if (S_ISFIFO(info.st_mode)) {
        report(fall, "pipe", FALL_WORKER, "a pipe to another process", where(fd),
               "start processes below the checkpoint");
    } else if (S_ISREG(info.st_mode) && is_locked(fd)) {
        report(fall, "lock", FALL_WORKER, name, where(fd), "lock files below the checkpoint");
    } else if (strncmp(name, "anon_inode:", 11) == 0 && is_stateful(name)) {
        report(fall, "kernel-object", FALL_SCRIPT, name, where(fd),
               "start event loops below the checkpoint");
    }
}

void samovar_survey_note_child(void) {
    samovar_survey_note(SURVEY_CHILD);
}

static void look_at_threads(int *fall) {
    struct stat task;
    if (stat("/proc/self/task", &task) == 0 && task.st_nlink > 3) {
        report(fall, "thread", FALL_SCRIPT, "a thread", where(SURVEY_THREAD),
               "an extension started it; neither a fork nor a rollback keeps threads");
    }
}

static void look_at_children(int *fall) {
    siginfo_t child = {0};
    if (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0) {
        report(fall, "child", FALL_WORKER, "a child process", where(SURVEY_CHILD),
               "start processes below the checkpoint, or wait for their end above it");
    }
}

static void look_at_timers(int *fall) {
    struct itimerval real, virtual;
    getitimer(ITIMER_REAL, &real);
    getitimer(ITIMER_VIRTUAL, &virtual);
    if (timerisset(&real.it_value) || timerisset(&virtual.it_value)) {
        report(fall, "timer", FALL_SCRIPT, "a running timer", where(SURVEY_TIMER),
               "set alarms below the checkpoint: one cannot be set back");
    }
}

int samovar_survey(void) {
    int fall = FALL_SHARED;
    surveying = false;
    opened = 0;
    for_each_descriptor(look_at_descriptor, &fall);
    look_at_threads(&fall);
    look_at_children(&fall);
    look_at_timers(&fall);
    return fall;
}

/* ---- what stays open ----------------------------------------------------------------------- */

/* A file of its own: the position of a shared one would be every worker's. */
static void reopen(int fd) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const int flags = fcntl(fd, F_GETFL), close_on_exec = fcntl(fd, F_GETFD);
    const off_t offset = lseek(fd, 0, SEEK_CUR);
    int own = open(path, (flags & (O_ACCMODE | O_APPEND | O_NONBLOCK | O_DIRECTORY)) | O_CLOEXEC);
    if (own < 0) {
        return;
    }
    lseek(own, offset, SEEK_SET);
    dup3(own, fd, close_on_exec & FD_CLOEXEC ? O_CLOEXEC : 0);
    close(own);
}

static void keep(int fd, void *data) {
    image_survivors *s = data;
    struct stat info;
    struct sockaddr_storage peer;
    if (was_there(fd) || s->kept_count == KEPT_MAX || fstat(fd, &info) != 0 || fd == s->pagemap ||
        fd == s->statm || fd == s->cwd) {
        return;
    }
    if (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) {
        kept_descriptor *k = &s->kept[s->kept_count++];
        *k = (kept_descriptor){.fd = fd, .flags = fcntl(fd, F_GETFL)};
        if (!find_locks(fd, &k->locked_from, &k->locked_to)) {
            reopen(fd);
        }
        k->offset = lseek(fd, 0, SEEK_CUR);
    } else if (S_ISSOCK(info.st_mode) && is_connection(fd, &peer) && !is_datagram(fd)) {
        s->kept[s->kept_count++] = (kept_descriptor){
            .fd = fd, .flags = fcntl(fd, F_GETFL), .offset = -1, .connection = true};
    }
}

void samovar_survey_kept(image_survivors *s) {
    for_each_descriptor(keep, s);
}
