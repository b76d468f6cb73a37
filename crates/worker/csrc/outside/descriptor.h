/* Properties of a descriptor, for the code that judges the descriptors of the boot (preflight.c)
 * and the code that keeps them (inherited_fds.c).
 *
 * This folder handles objects outside the process, which a rollback of memory does not reach:
 * the objects that exist, those that may be shared, and those that are proven to be unchanged.
 * It includes from memory/, and from nothing above. */
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

/* Writes the kernel's name for it to a text of DESCRIPTOR_TEXT bytes. */
void samovar_descriptor_name(int fd, char *to);
/* Writes "a connection to …" to a text of DESCRIPTOR_TEXT bytes. */
void samovar_descriptor_peer_name(const struct sockaddr_storage *peer, char *to);

/* Returns true if this option of SOL_SOCKET is on. */
bool samovar_socket_has(int fd, int option);
/* Returns true for a datagram socket. Datagrams such as syslog's and statsd's need no response,
 * so all workers may send on one socket. */
bool samovar_is_datagram(int fd);
bool samovar_is_connection(int fd, struct sockaddr_storage *peer);
/* Returns true for the name of a device that keeps no state. */
bool samovar_is_stateless(const char *name);
/* Returns true for a file of php://temp, tmpfile() or similar functions. Data that one request
 * writes there would reach the next one. */
bool samovar_is_temporary(int fd, const struct stat *info);

#endif
