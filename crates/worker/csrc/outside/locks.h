/* The process's locks on a file, from /proc/self/fdinfo. */
#ifndef SAMOVAR_OUTSIDE_LOCKS_H
#define SAMOVAR_OUTSIDE_LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { LOCKS_BYTES_MAX = 4096 };

/* Finds the range of bytes that covers all locks of the process. Returns false if it has none. */
bool samovar_locks_range(int fd, off_t *from, off_t *to);
/* Writes the kernel's list of them to a text of LOCKS_BYTES_MAX bytes. Returns its length; 0:
 * none. */
size_t samovar_locks_read(int fd, char *text);
/* Returns a hash of that list; 0: none. Uses no memory of the image. */
uint64_t samovar_locks_in_short(int fd);

#endif
