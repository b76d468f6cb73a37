/* Processes that a request has started, and descriptors of the boot that they can use after its
 * end. */
#ifndef SAMOVAR_OUTSIDE_DESCENDANTS_H
#define SAMOVAR_OUTSIDE_DESCENDANTS_H

#include "memory/persistent.h"
#include "outside/inherited_fds.h"
#include <stdint.h>
#include <sys/socket.h>

typedef struct {
    volatile bool started; /* the request has started a process, of any kind */
    volatile bool shared;  /* a descriptor of the boot was copied, or is not closed on exec */
    volatile bool unknown; /* there is no pipe, although the request has forked */
    volatile bool has_pipe;
    int pipe[2]; /* each process that was forked and runs no new program holds both ends */
    uint64_t inode;
} descendants_state;

PERSISTENT_STATE(descendants_state, samovar_descendants_state, descendants);

/* Called before a fork. Opens the pipe if this process is a worker that keeps descriptors of the
 * boot. */
void samovar_descendants_fork(void);
/* Called in the new process, before it loses its access to the state. */
void samovar_descendants_forked(void);
/* Called when a program is started without a fork that libc reports. */
void samovar_descendants_spawn(void);
/* Called when a descriptor is copied, or when a request changes its close-on-exec flag. */
void samovar_descendants_share(int fd);
/* Called for each message on a socket: it may pass descriptors to another process. */
void samovar_descendants_sent(const struct msghdr *message);

/* Called after a request. Returns true if another process can still use a descriptor of the
 * boot. Forgets the request's records. */
bool samovar_descendants_remain(void);
/* Ends sessions at databases that another process would keep open, as drivers end them when PHP
 * closes a connection. */
void samovar_descendants_hang_up(const kept_state *kept);

#endif
