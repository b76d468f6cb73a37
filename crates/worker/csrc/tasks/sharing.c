/* Two tasks on one connection: the second one is rejected before it sends anything.
 *
 * Database protocols send responses in the order of the queries, so it would be unknown which
 * task the next bytes belong to. The connection is shut down, because its two users no longer
 * agree with their library about the queries on it. */
#define _GNU_SOURCE
#include "tasks/sharing.h"
#include "outside/descriptor.h"
#include "tasks/task.h"
#include <zend_exceptions.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_stream(int fd) {
    int type = 0;
    socklen_t len = sizeof type;
    return syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
           type == SOCK_STREAM;
}

static bool is_listening(int fd) {
    return samovar_socket_has(fd, SO_ACCEPTCONN);
}

static bool waits_for(const task_wait *wait, int fd) {
    for (uint32_t i = 0; i < wait->count; i++) {
        if (wait->fds[i].fd == fd) {
            return true;
        }
    }
    return false;
}

static const task_wait *other_user(int fd) {
    const samovar_task *self = samovar_task_current();
    for (const task_wait *wait = samovar_task_waits(); wait; wait = wait->next) {
        if (wait->is_call && wait->task != self && waits_for(wait, fd)) {
            return wait;
        }
    }
    return NULL;
}

static const char *name_of(const samovar_task *task) {
    return task ? task->name : "the main code";
}

static void refuse(samovar_task *self, const samovar_task *other, int fd) {
    struct sockaddr_storage peer;
    char what[DESCRIPTOR_TEXT] = "a connection";
    if (samovar_is_connection(fd, &peer)) {
        samovar_descriptor_peer_name(&peer, what);
    }
    zend_throw_error(NULL,
                     "%s is used by two tasks at once: %s waits for a response on it, %s sends a "
                     "request; hint: take a separate connection for each task from a pool "
                     "(Samovar\\Pool)",
                     what, name_of(other), name_of(self));
    if (self && !self->conflict && EG(exception)) {
        self->conflict = EG(exception);
        GC_ADDREF(self->conflict);
    }
}

bool samovar_task_shares(int fd) {
    const task_wait *wait = other_user(fd);
    if (!wait || !is_stream(fd) || is_listening(fd)) {
        return false;
    }
    if (!EG(exception)) {
        refuse(samovar_task_current(), wait->task, fd);
    }
    samovar_task_cut(fd);
    return true;
}

void samovar_task_cut(int fd) {
    if (is_stream(fd) && !is_listening(fd)) {
        shutdown(fd, SHUT_RDWR);
    }
}
