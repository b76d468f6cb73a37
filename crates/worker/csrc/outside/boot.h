/* What an application opens and starts while it is booted, and which line of its PHP did: noted by
 * the interposed functions of libc, judged by preflight.c. */
#ifndef SAMOVAR_OUTSIDE_BOOT_H
#define SAMOVAR_OUTSIDE_BOOT_H

#include <stdbool.h>
#include <stddef.h>

/* The application is being booted: what it asks of others is counted. */
extern bool samovar_booting;

/* Before the boot: what is open already is the server's own. */
void samovar_boot_begin(void);
/* Of its end the notes stay, and no more are taken. */
void samovar_boot_end(void);

/* What has no descriptor, in the place of one. Not -1, which is no descriptor at all. */
enum { BOOT_THREAD = -2, BOOT_CHILD = -3, BOOT_TIMER = -4 };

/* Notes, while booting. `fd` was opened, or something of the above was started. */
void samovar_boot_opened(int fd);
void samovar_boot_forks(void);
/* What was sent, by which a cipher is known. */
void samovar_boot_sent(int fd, const void *from, size_t len);
/* A socket was given an address of its own; options; a peer. */
void samovar_boot_bound(int fd);
void samovar_boot_tuned(int fd);
void samovar_boot_connects(int fd);

/* The server's own, or PHP's before the application began. */
bool samovar_boot_was_there(int fd);
/* From now on it counts as such. */
void samovar_boot_disown(int fd);
bool samovar_boot_has_cipher(int fd);
bool samovar_boot_is_bound(int fd);
bool samovar_boot_is_tuned(int fd);
/* "file:line" of PHP, "" when that is not known. */
const char *samovar_boot_where(int fd);

#endif
