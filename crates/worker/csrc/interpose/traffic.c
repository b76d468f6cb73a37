/* read, write, send, recv and related functions: traffic on descriptors of the image is reported
 * to outside/connection_protocols.c, and during a boot to outside/data.c. */
#define _GNU_SOURCE
#include "interpose/blocking.h"
#include "interpose/network.h"
#include "interpose/original.h"
#include "memory/persistent.h"
#include "outside/boot.h"
#include "outside/boot_traffic.h"
#include "outside/data.h"
#include "outside/connection_protocols.h"
#include "outside/descendants.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* Returns true if traffic must be reported. Most workers keep no connection of the boot. */
static inline bool is_heard(void) {
    const kept_state *s = samovar_persistent ? samovar_kept_state() : samovar_talk_parents;
    return samovar_booting || (s && s->count > 0);
}

/* During a boot, queries to peers and their responses are counted. */
static void note_sent(int fd, const void *from, size_t len) {
    if (!is_heard()) {
        return;
    }
    if (samovar_booting) {
        samovar_data_asked(fd, from, len);
    }
    samovar_talk_sent(fd, from, len);
}

static void note_got(int fd, const void *to, size_t len) {
    if (samovar_booting) {
        samovar_data_responded(fd, to, (ssize_t)len);
        samovar_boot_traffic_received(fd, to, len);
    }
    samovar_talk_received(fd, to, len);
}

static void note_parts_sent(int fd, const struct iovec *parts, size_t count) {
    for (size_t i = 0; i < count; i++) {
        note_sent(fd, parts[i].iov_base, parts[i].iov_len);
    }
}

static void note_parts_received(int fd, const struct iovec *parts, size_t count, ssize_t n) {
    for (size_t i = 0; n > 0 && i < count; i++) {
        const size_t len = (size_t)n < parts[i].iov_len ? (size_t)n : parts[i].iov_len;
        note_got(fd, parts[i].iov_base, len);
        n -= (ssize_t)len;
    }
}

/* Fails if the request's writes to sockets are refused. */
#define MAY_WRITE(fd)                                                                              \
    do {                                                                                           \
        if (REFUSES(samovar_refuses_write(fd))) {                                                  \
            return -1;                                                                             \
        }                                                                                          \
    } while (0)

ssize_t write(int fd, const void *from, size_t len) {
    MAY_WRITE(fd);
    note_sent(fd, from, len);
    return BLOCKING(BLOCKS_WRITE, fd, SYS_write, fd, from, len, 0, 0, 0);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    MAY_WRITE(fd);
    note_parts_sent(fd, parts, (size_t)count);
    return BLOCKING(BLOCKS_WRITE, fd, SYS_writev, fd, parts, count, 0, 0, 0);
}

ssize_t sendto(int fd, const void *from, size_t len, int flags, __CONST_SOCKADDR_ARG to,
               socklen_t to_len) {
    MAY_WRITE(fd);
    note_sent(fd, from, len);
    const struct sockaddr *address = to.__sockaddr__;
    return BLOCKING(BLOCKS_WRITE, fd, SYS_sendto, fd, from, len, flags, address, to_len);
}

ssize_t send(int fd, const void *from, size_t len, int flags) {
    MAY_WRITE(fd);
    note_sent(fd, from, len);
    return BLOCKING(BLOCKS_WRITE, fd, SYS_sendto, fd, from, len, flags, NULL, 0);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    MAY_WRITE(fd);
    note_parts_sent(fd, message->msg_iov, message->msg_iovlen);
    samovar_descendants_sent(message);
    return BLOCKING(BLOCKS_WRITE, fd, SYS_sendmsg, fd, message, flags, 0, 0, 0);
}

/* Fails on a datagram socket on which an earlier request has sent a query: incoming data may be
 * the response to that query. */
#define MUST_BE_OURS(fd)                                                                           \
    do {                                                                                           \
        if (is_heard() && !samovar_talk_may_receive(fd)) {                                         \
            errno = ECONNRESET;                                                                    \
            return -1;                                                                             \
        }                                                                                          \
    } while (0)

/* MSG_PEEK takes nothing from the socket. */
static ssize_t note_received(int fd, const void *to, ssize_t n, int flags) {
    if (n > 0 && !(flags & MSG_PEEK) && is_heard()) {
        note_got(fd, to, (size_t)n);
    }
    return n;
}

ssize_t read(int fd, void *to, size_t room) {
    MUST_BE_OURS(fd);
    const ssize_t n = BLOCKING(BLOCKS_READ, fd, SYS_read, fd, to, room, 0, 0, 0);
    return note_received(fd, to, n, 0);
}

ssize_t readv(int fd, const struct iovec *parts, int count) {
    MUST_BE_OURS(fd);
    const ssize_t n = BLOCKING(BLOCKS_READ, fd, SYS_readv, fd, parts, count, 0, 0, 0);
    note_parts_received(fd, parts, (size_t)count, n);
    return n;
}

ssize_t recvfrom(int fd, void *to, size_t room, int flags, __SOCKADDR_ARG from,
                 socklen_t *from_len) {
    MUST_BE_OURS(fd);
    const struct sockaddr *address = from.__sockaddr__;
    const ssize_t n =
        BLOCKING(BLOCKS_READ, fd, SYS_recvfrom, fd, to, room, flags, address, from_len);
    return note_received(fd, to, n, flags);
}

ssize_t recv(int fd, void *to, size_t room, int flags) {
    MUST_BE_OURS(fd);
    const ssize_t n = BLOCKING(BLOCKS_READ, fd, SYS_recvfrom, fd, to, room, flags, NULL, NULL);
    return note_received(fd, to, n, flags);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
    MUST_BE_OURS(fd);
    const ssize_t n = BLOCKING(BLOCKS_READ, fd, SYS_recvmsg, fd, message, flags, 0, 0, 0);
    if (!(flags & MSG_PEEK)) {
        note_parts_received(fd, message->msg_iov, message->msg_iovlen, n);
    }
    return n;
}

/* With _FORTIFY_SOURCE the compiler calls these instead; libc's versions would not call ours. */
ssize_t __read_chk(int fd, void *to, size_t room, size_t size);
ssize_t __recv_chk(int fd, void *to, size_t room, size_t size, int flags);
ssize_t __recvfrom_chk(int fd, void *to, size_t room, size_t size, int flags, __SOCKADDR_ARG from,
                       socklen_t *from_len);

static void must_fit(size_t room, size_t size) {
    if (room > size) {
        abort();
    }
}

ssize_t __read_chk(int fd, void *to, size_t room, size_t size) {
    must_fit(room, size);
    return read(fd, to, room);
}

ssize_t __recv_chk(int fd, void *to, size_t room, size_t size, int flags) {
    must_fit(room, size);
    return recv(fd, to, room, flags);
}

ssize_t __recvfrom_chk(int fd, void *to, size_t room, size_t size, int flags, __SOCKADDR_ARG from,
                       socklen_t *from_len) {
    must_fit(room, size);
    return recvfrom(fd, to, room, flags, from, from_len);
}

int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags) {
    MAY_WRITE(fd);
    for (unsigned i = 0; i < count; i++) {
        note_parts_sent(fd, messages[i].msg_hdr.msg_iov, messages[i].msg_hdr.msg_iovlen);
        samovar_descendants_sent(&messages[i].msg_hdr);
    }
    return (int)BLOCKING(BLOCKS_WRITE, fd, SYS_sendmmsg, fd, messages, count, flags, 0, 0);
}

int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *limit) {
    MUST_BE_OURS(fd);
    samovar_talk_other(fd);
    return (int)BLOCKING(BLOCKS_READ, fd, SYS_recvmmsg, fd, messages, count, flags, limit, 0);
}

ssize_t sendfile(int to, int from, off_t *offset, size_t len) {
    MAY_WRITE(to);
    samovar_talk_other(to);
    return BLOCKING(BLOCKS_WRITE, to, SYS_sendfile, to, from, offset, len, 0, 0);
}

ssize_t sendfile64(int to, int from, off_t *offset, size_t len) __attribute__((alias("sendfile")));

ssize_t splice(int from, off_t *from_offset, int to, off_t *to_offset, size_t len, unsigned flags) {
    MAY_WRITE(to);
    samovar_talk_other(from);
    samovar_talk_other(to);
    return BLOCKING(BLOCKS_READ, from, SYS_splice, from, from_offset, to, to_offset, len, flags);
}

int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t len) {
    if (REFUSES(samovar_refuses_connection(to.__sockaddr__, len))) {
        return -1;
    }
    samovar_talk_other(fd);
    samovar_boot_connects(fd);
    samovar_descriptor_changes++;
    const struct sockaddr *address = to.__sockaddr__;
    return (int)BLOCKING_CALL(BLOCKS_CONNECT, fd, address, len, SYS_connect, fd, address, len, 0, 0,
                              0);
}

int bind(int fd, __CONST_SOCKADDR_ARG to, socklen_t len) {
    samovar_talk_other(fd);
    samovar_boot_bound(fd);
    return (int)syscall(SYS_bind, fd, to, len);
}

int listen(int fd, int waiting) {
    samovar_talk_other(fd);
    return (int)syscall(SYS_listen, fd, waiting);
}

int shutdown(int fd, int how) {
    samovar_talk_other(fd);
    return (int)syscall(SYS_shutdown, fd, how);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len) {
    if (level != SOL_SOCKET || (name != SO_RCVTIMEO && name != SO_SNDTIMEO)) {
        samovar_talk_other(fd);
        samovar_boot_tuned(fd);
    }
    return (int)syscall(SYS_setsockopt, fd, level, name, value, len);
}

int tcsetattr(int fd, int when, const struct termios *to) {
    ORIGINAL(tcsetattr)
    samovar_talk_other(fd);
    return original(fd, when, to);
}
