/* What a descriptor is: asked by those who judge what the boot has opened (preflight.c) and by
 * those who keep it (kept.c).
 *
 * This folder is about objects outside the process, which a rollback of memory does not reach:
 * which there are, what may be shared, what is proven to be as it was. It includes from memory/,
 * and from nothing above. */
#ifndef SAMOVAR_OUTSIDE_DESCRIPTOR_H
#define SAMOVAR_OUTSIDE_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum {
    DESCRIPTORS_MAX = 1024, /* open when the image is taken */
    DESCRIPTOR_TEXT = 512   /* bytes of a description */
};

/* Descriptors by their numbers. */
typedef struct {
    uint64_t bits[DESCRIPTORS_MAX / 64];
} descriptor_set;

static inline bool samovar_set_has(const descriptor_set *set, int fd) {
    return fd >= 0 && fd < DESCRIPTORS_MAX && (set->bits[fd / 64] >> (fd % 64) & 1);
}

static inline void samovar_set_add(descriptor_set *set, int fd) {
    if (fd >= 0 && fd < DESCRIPTORS_MAX) {
        set->bits[fd / 64] |= 1ULL << (fd % 64);
    }
}

static inline void samovar_set_remove(descriptor_set *set, int fd) {
    if (fd >= 0 && fd < DESCRIPTORS_MAX) {
        set->bits[fd / 64] &= ~(1ULL << (fd % 64));
    }
}

typedef void samovar_visit_descriptor(int fd, void *data);
void samovar_for_each_descriptor(samovar_visit_descriptor *visit, void *data);

/* What the kernel calls it, to a text of DESCRIPTOR_TEXT bytes. */
void samovar_descriptor_name(int fd, char *to);
/* "a connection to …", to a text of DESCRIPTOR_TEXT bytes. */
void samovar_descriptor_peer_name(const struct sockaddr_storage *peer, char *to);

/* An option of SOL_SOCKET that is on. */
bool samovar_socket_has(int fd, int option);
/* Datagrams that need no answer: syslog's, statsd's. All may send on one socket. */
bool samovar_is_datagram(int fd);
bool samovar_is_connection(int fd, struct sockaddr_storage *peer);
/* By its name: a device that forgets at once what it is asked. */
bool samovar_is_stateless(const char *name);
/* Of php://temp, tmpfile() and the like: what a request writes there would be the next one's. */
bool samovar_is_temporary(int fd, const struct stat *info);

#endif
