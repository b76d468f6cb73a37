/* flock, fsync, message queues: waits for a lock or a disk. (Locks of fcntl() are in descriptors.c,
 * semaphores in process.c.) */
#define _GNU_SOURCE
#include "interpose/blocking.h"
#include <sys/file.h>
#include <sys/msg.h>

int flock(int fd, int operation) {
    if (operation & (LOCK_NB | LOCK_UN)) {
        return (int)syscall(SYS_flock, fd, operation);
    }
    return (int)BLOCKING(BLOCKS_LOCK, fd, SYS_flock, fd, operation, 0, 0, 0, 0);
}

int fsync(int fd) {
    return (int)BLOCKING(BLOCKS_DISK, fd, SYS_fsync, fd, 0, 0, 0, 0, 0);
}

int fdatasync(int fd) {
    return (int)BLOCKING(BLOCKS_DISK, fd, SYS_fdatasync, fd, 0, 0, 0, 0, 0);
}

int msgsnd(int queue, const void *message, size_t len, int flags) {
    return (int)BLOCKING(BLOCKS_QUEUE, -1, SYS_msgsnd, queue, message, len, flags, 0, 0);
}

ssize_t msgrcv(int queue, void *message, size_t room, long type, int flags) {
    return BLOCKING(BLOCKS_QUEUE, -1, SYS_msgrcv, queue, message, room, type, flags, 0);
}
