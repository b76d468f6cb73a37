/* Descriptors, threads, processes and timers that an application creates while it is booted, and
 * the line of PHP that did. The interposed functions of libc record them; preflight.c judges
 * them. */
#ifndef SAMOVAR_OUTSIDE_BOOT_H
#define SAMOVAR_OUTSIDE_BOOT_H

#include <stdbool.h>
#include <stddef.h>

/* True while the application is booted: its queries to others are counted. */
extern bool samovar_booting;

/* Called before the boot: descriptors that are already open belong to the server. */
void samovar_boot_begin(void);
/* Stops recording. The records stay. */
void samovar_boot_end(void);

/* Stand-ins for objects without a descriptor. Not -1, which is no descriptor at all. */
enum { BOOT_THREAD = -2, BOOT_CHILD = -3, BOOT_TIMER = -4, BOOT_MAPPING = -5, BOOT_KEY = -6 };

/* Records, while booting, that `fd` was opened, or that one of the above was started. */
void samovar_boot_opened(int fd);
void samovar_boot_forks(void);
/* Records, while booting, a mapping that forks share, of memory or of a file (-1: none). */
void samovar_boot_mapped(const void *at, int fd);
/* Records data that was sent, by which encryption is detected. */
void samovar_boot_sent(int fd, const void *from, size_t len);
/* Records that a socket was bound to an address, given options, or connected. */
void samovar_boot_bound(int fd);
void samovar_boot_tuned(int fd);
void samovar_boot_connects(int fd);

/* Returns true for a descriptor of the server, or of PHP before the application began. */
bool samovar_boot_was_there(int fd);
/* From now on the descriptor counts as such. */
void samovar_boot_disown(int fd);
bool samovar_boot_has_cipher(int fd);
bool samovar_boot_is_bound(int fd);
bool samovar_boot_is_tuned(int fd);
/* Returns true if memory without a name that forks share is still mapped. */
bool samovar_boot_shares_memory(void);
/* Returns "file:line" of PHP, "" if that is not known. */
const char *samovar_boot_where(int fd);

#endif
