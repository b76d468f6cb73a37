/* The process's locks on a file, as /proc/self/fdinfo tells them. */
#ifndef SAMOVAR_OUTSIDE_LOCKS_H
#define SAMOVAR_OUTSIDE_LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { LOCKS_BYTES_MAX = 4096 };

/* The range of bytes that the process has locked, all locks together; false: it has none. */
bool samovar_locks_range(int fd, off_t *from, off_t *to);
/* What the kernel says of them, to a text of LOCKS_BYTES_MAX bytes; its length, 0: none. */
size_t samovar_locks_read(int fd, char *text);
/* The same in short; 0: none. Uses no memory of the image. */
uint64_t samovar_locks_in_short(int fd);

#endif
