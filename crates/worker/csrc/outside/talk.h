/* What is done with the descriptors of the image that cannot be set back: told by the interposed
 * functions, judged at the end of the request. */
#ifndef SAMOVAR_OUTSIDE_TALK_H
#define SAMOVAR_OUTSIDE_TALK_H

#include "outside/kept.h"

/* In a process that a request has forked: its worker's. What it does with a connection is done. */
extern kept_state *samovar_talk_parents;

/* Told of every descriptor; those that are not the image's are nothing to it. */
void samovar_talk_sent(int fd, const void *from, size_t len);
void samovar_talk_received(int fd, const void *to, size_t len);
/* It was bound, connected, shut down, copied. */
void samovar_talk_other(int fd);
/* False: what would be received may be the answer to an earlier request. */
bool samovar_talk_may_receive(int fd);
/* As given to poll() and select(). */
void samovar_talk_waits(const void *fds, unsigned long count);
void samovar_talk_selects(int count, const void *set);

/* From now on it is read along; false: it is no connection of the image. */
bool samovar_talk_begin(int fd, talk_language language);
/* Each question has its answer, and the session on the server is as before. */
bool samovar_talk_is_finished(int fd);
/* What was done with it so far has left nothing. */
void samovar_talk_settle(int fd);
/* It is the image's, and no file. */
bool samovar_talk_is_kept(int fd);
/* At the end of a request: whether all that it used is as it was. `unclean`: a fatal error ended
 * it. */
bool samovar_talk_ends(kept_state *s, bool unclean);
/* Before this process, forked by a request, is no worker any more. */
void samovar_talk_forked(void);

#endif
