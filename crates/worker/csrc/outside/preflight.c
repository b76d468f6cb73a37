/* Finds resources that the boot has left in the process and that forks cannot share, or a
 * rollback cannot restore.
 *
 * Each finding is reported with advice, and names a fallback that is still correct: boot in
 * every worker, or run the whole script for every request. */
#define _GNU_SOURCE
#include "outside/preflight.h"
#include "boundary.h"
#include "outside/boot.h"
#include "outside/connections.h"
#include "outside/data.h"
#include "outside/descriptor.h"
#include "outside/inherited_fds.h"
#include "outside/locks.h"
#include "outside/request_reads.h"
#include "outside/request_starts.h"
#include "outside/tls.h"
#include <php.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { COPY_BYTES_MAX = 64 << 20 }; /* of a temporary file, per worker */

static const char *const action_names[] = {"note", "worker", "script"};

static void report(int *fall, const char *kind, int action, const char *what, const char *line,
                   const char *advice) {
    samovar_finding(kind, action_names[action], what, line, advice);
    *fall = MAX(*fall, action);
}

/* ---- descriptors --------------------------------------------------------------------------- */

static void look_at_socket(int fd, int *fall) {
    struct sockaddr_storage peer;
    char what[DESCRIPTOR_TEXT];
    if (samovar_socket_has(fd, SO_ACCEPTCONN)) {
        report(fall, "listener", FALL_SHARED, "a listening socket", samovar_boot_where(fd),
               "all workers share it");
        return;
    }
    if (samovar_is_datagram(fd) ||
        (!samovar_is_connection(fd, &peer) && !samovar_boot_is_bound(fd))) {
        return; /* Not connected: two processes could not mix up anything. */
    }
    if (!samovar_is_connection(fd, &peer)) {
        report(fall, "connection", FALL_WORKER,
               "a socket that is connecting, or is bound to a name", samovar_boot_where(fd),
               "connect after the checkpoint");
        return;
    }
    samovar_descriptor_peer_name(&peer, what);
    if (samovar_tls_live() > 0 || samovar_boot_has_cipher(fd)) {
        report(fall, "tls", FALL_SCRIPT, what, samovar_boot_where(fd),
               "an encrypted connection cannot return to an earlier state: open it after the "
               "checkpoint, or use a unix socket");
        return;
    }
    report(
        fall, "connection", FALL_WORKER, what, samovar_boot_where(fd),
        samovar_connections_know(fd)
            ? "each worker boots separately and has its own connection. After a request that may "
              "have changed its session (settings, variables, temporary tables, locks), the "
              "session is reset or the worker leaves (checkpoint_connections). For workers that "
              "share an image, open it after the checkpoint"
            : "open it after the checkpoint: Samovar does not know its protocol, so each request "
              "that uses it ends its worker, unless the application calls Samovar\\kept() with it");
}

/* Kernel objects have state that a rollback of memory does not reach: epoll, timerfd, eventfd,
 * inotify, io_uring, and those of the future. A pidfd is an exception: it only names a process. */
static bool is_kernel_object(const char *name) {
    return strncmp(name, "anon_inode:", 11) == 0 && !strstr(name, "pidfd");
}

/* The file of a session that session_start() has opened (ext/session/mod_files.c). */
static bool is_session(const char *path) {
    const char *name = strrchr(path, '/');
    return strncmp(name ? name + 1 : path, "sess_", 5) == 0;
}

/* A lock that others wait for indicates that the process has its own copy of the protected data.
 * A rollback would restore that copy when the file has changed long ago (SQLite's exclusive
 * mode, dba). Returns false if there is no lock. */
static bool look_at_locks(int fd, const char *name, int *fall) {
    char text[LOCKS_BYTES_MAX];
    if (samovar_locks_read(fd, text) == 0) {
        return false;
    }
    const bool exclusive = strstr(text, " WRITE ") != NULL;
    if (is_session(name)) {
        report(fall, "session", exclusive ? FALL_SCRIPT : FALL_WORKER, "the session of no visitor",
               samovar_boot_where(fd),
               "the boot has started it and holds the lock of its file: call session_start() "
               "after the checkpoint, in each request");
        return true;
    }
    report(fall, "lock", exclusive ? FALL_SCRIPT : FALL_WORKER, name, samovar_boot_where(fd),
           exclusive ? "lock files after the checkpoint: a rollback would restore the data that "
                       "this lock protects in memory, but not in the file"
                     : "lock files after the checkpoint");
    return true;
}

/* php://stderr is a copy of the server's own: a pipe in a container, a socket under systemd. All
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

static void look_at_file(int fd, const struct stat *info, const char *name, int *fall) {
    if (samovar_is_temporary(fd, info)) {
        if (info->st_size > COPY_BYTES_MAX) {
            report(fall, "image", FALL_SCRIPT, "a temporary file of more than 64 MiB",
                   samovar_boot_where(fd), "fill large temporary files after the checkpoint");
        }
    } else if ((fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND)) == O_WRONLY) {
        report(fall, "file", FALL_SHARED, name, samovar_boot_where(fd),
               "each request overwrites the data of the previous one: open it in append mode "
               "(`a`), or after the checkpoint");
    }
}

/* True if the last preflight found nothing that prevents workers from sharing an image. */
static bool is_shared;

static uint32_t opened; /* descriptors that the boot has opened */

static void look_at_descriptor(int fd, void *data) {
    int *fall = data;
    struct stat info;
    char name[DESCRIPTOR_TEXT];
    if (samovar_boot_was_there(fd) || fstat(fd, &info) != 0) {
        return;
    }
    if (is_output(&info)) {
        /* A worker has another output, and would not recognize this one. */
        samovar_boot_disown(fd);
        return;
    }
    samovar_descriptor_name(fd, name);
    if (++opened > KEPT_MAX) {
        if (opened == KEPT_MAX + 1) {
            report(fall, "image", FALL_SCRIPT, "more than 64 open descriptors",
                   samovar_boot_where(fd), "close files before the checkpoint");
        }
    } else if (fd >= DESCRIPTORS_MAX) {
        report(fall, "kernel-object", FALL_SCRIPT, "a descriptor above 1023",
               samovar_boot_where(fd), "open fewer files before the checkpoint");
    } else if (S_ISSOCK(info.st_mode)) {
        look_at_socket(fd, fall);
    } else if (S_ISFIFO(info.st_mode)) {
        report(fall, "pipe", FALL_WORKER, "a pipe to another process", samovar_boot_where(fd),
               "start processes after the checkpoint: each request that uses this one ends its "
               "worker");
    } else if (S_ISCHR(info.st_mode) && !samovar_is_stateless(name)) {
        report(fall, "pipe", FALL_WORKER, name, samovar_boot_where(fd),
               "open terminals and devices after the checkpoint: each request that uses this one "
               "ends its worker");
    } else if (S_ISREG(info.st_mode)) {
        if (!look_at_locks(fd, name, fall)) {
            look_at_file(fd, &info, name, fall);
        }
    } else if (is_kernel_object(name)) {
        report(fall, "kernel-object", FALL_SCRIPT, name, samovar_boot_where(fd),
               "start event loops after the checkpoint");
    }
}

/* ---- the process --------------------------------------------------------------------------- */

static void look_at_threads(int *fall) {
    struct stat task;
    if (stat("/proc/self/task", &task) == 0 && task.st_nlink > 3) {
        report(fall, "thread", FALL_SCRIPT, "a thread", samovar_boot_where(BOOT_THREAD),
               "an extension started it; threads survive neither a fork nor a rollback");
    }
}

static void look_at_children(int *fall) {
    siginfo_t child = {0};
    if (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0) {
        report(fall, "child", FALL_WORKER, "a child process", samovar_boot_where(BOOT_CHILD),
               "start processes after the checkpoint, or wait for their end before it");
    }
}

static void look_at_timers(int *fall) {
    struct itimerval real, virtual;
    getitimer(ITIMER_REAL, &real);
    getitimer(ITIMER_VIRTUAL, &virtual);
    if (timerisset(&real.it_value) || timerisset(&virtual.it_value)) {
        report(fall, "timer", FALL_SCRIPT, "a running timer", samovar_boot_where(BOOT_TIMER),
               "set alarms after the checkpoint: a rollback cannot restore them");
    }
}

/* A signal that was raised while it was blocked. Signals without a default action are
 * left out: SIGCHLD of the boot's programs, for example. */
static void look_at_signals(int *fall) {
    sigset_t pending;
    sigpending(&pending);
    const int harmless[] = {SIGCHLD, SIGCONT, SIGURG, SIGWINCH};
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++) {
        sigdelset(&pending, harmless[i]);
    }
    if (!sigisemptyset(&pending)) {
        report(fall, "signal", FALL_SCRIPT, "a pending signal", "",
               "unblock and handle it before the checkpoint: a fork does not inherit it");
    }
}

static void look_at_memory(int *fall) {
    if (samovar_boot_shares_memory()) {
        report(fall, "memory", FALL_SHARED, "shared memory without a name",
               samovar_boot_where(BOOT_MAPPING),
               "no rollback restores it: each request sees the writes of all earlier ones");
    }
}

static void look_at_keys(int *fall) {
    const char *line = samovar_boot_where(BOOT_KEY);
    if (*line) {
        report(fall, "key", FALL_SHARED, "a key in a keyring of the kernel", line,
               "all requests share it, and no rollback restores it: add keys after the checkpoint");
    }
}

static bool is_dba(const char *type) {
    return type && strncasecmp(type, "dba", 3) == 0;
}

/* Returns true for a resource, or since PHP 8.4 an object of Dba\Connection. */
static bool has_dba(void) {
    zval *entry;
    ZEND_HASH_FOREACH_VAL(&EG(regular_list), entry) {
        if (is_dba(zend_rsrc_list_get_rsrc_type(Z_RES_P(entry)))) {
            return true;
        }
    }
    ZEND_HASH_FOREACH_END();
    for (uint32_t i = 1; i < EG(objects_store).top; i++) {
        const zend_object *object = EG(objects_store).object_buckets[i];
        if (IS_OBJ_VALID(object) && object->ce->type == ZEND_INTERNAL_CLASS &&
            is_dba(ZSTR_VAL(object->ce->name))) {
            return true;
        }
    }
    return false;
}

/* ext/dba keeps pages of its file in memory, even if it does not lock the file. */
static void look_at_dba(int *fall) {
    if (has_dba()) {
        report(fall, "lock", FALL_SCRIPT, "an open dba database", "",
               "open it after the checkpoint: a rollback would restore its data in memory, but "
               "not its file");
    }
}

int samovar_preflight(void) {
    int fall = FALL_SHARED;
    samovar_boot_end();
    opened = 0;
    samovar_for_each_descriptor(look_at_descriptor, &fall);
    look_at_threads(&fall);
    look_at_children(&fall);
    look_at_timers(&fall);
    look_at_signals(&fall);
    look_at_memory(&fall);
    look_at_keys(&fall);
    look_at_dba(&fall);
    is_shared = fall == FALL_SHARED;
    samovar_data_report();
    samovar_request_reads_report();
    samovar_request_starts_report();
    return fall;
}

bool samovar_preflight_shares(void) {
    return is_shared;
}
