/* Use of the descriptors of the image that cannot be restored: reported by the interposed
 * functions, judged at the end of the request. */
#ifndef SAMOVAR_OUTSIDE_CONNECTION_PROTOCOLS_H
#define SAMOVAR_OUTSIDE_CONNECTION_PROTOCOLS_H

#include "outside/inherited_fds.h"

/* In a process that a request has forked: the state of its worker. Its use of a connection
 * cannot be undone. */
extern kept_state *samovar_talk_parents;

/* Called for every descriptor; those outside of the image are ignored. */
void samovar_talk_sent(int fd, const void *from, size_t len);
void samovar_talk_received(int fd, const void *to, size_t len);
/* Called when it is bound, connected, shut down or copied. */
void samovar_talk_other(int fd);
/* Returns false if data to be received may be the response to an earlier request. */
bool samovar_talk_may_receive(int fd);
/* Called with the arguments of poll() and select(). */
void samovar_talk_waits(const void *fds, unsigned long count);
void samovar_talk_selects(int count, const void *set);

/* From now on the protocol is followed. Returns false if this is no connection of the image.
 * `always_resets`: no statement is proven. */
bool samovar_talk_begin(int fd, talk_language language, bool always_resets);
/* Called at the end of a request. Returns true if each query has its response, and the session on
 * the server is as it was when the image was taken. Resets the session if necessary. */
bool samovar_talk_return(int fd);
/* Declares that its use so far has left no change. */
void samovar_talk_settle(int fd);
/* Returns true if it belongs to the image, and is not a file. */
bool samovar_talk_is_kept(int fd);
/* Called at the end of a request. Returns true if all descriptors that it used are unchanged.
 * `unclean`: a fatal error ended the request. */
bool samovar_talk_ends(kept_state *s, bool unclean);
/* Called before this process, which a request has forked, stops being a worker. */
void samovar_talk_forked(void);

#endif
