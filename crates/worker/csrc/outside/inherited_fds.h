/* The descriptors of the boot that a worker keeps open. */
#ifndef SAMOVAR_OUTSIDE_INHERITED_FDS_H
#define SAMOVAR_OUTSIDE_INHERITED_FDS_H

#include "memory/persistent.h"
#include "outside/descriptor.h"
#include "outside/language.h"

enum { KEPT_MAX = 64 }; /* connections and files that an image keeps open */

typedef enum {
    KEPT_FILE, /* or a folder: restored */
    KEPT_CONNECTION,
    KEPT_DATAGRAM,
    KEPT_OTHER /* a pipe, a terminal, a socket without a peer, any other */
} kept_kind;

/* A descriptor of the image that a request may use, and the state that is restored after it. */
typedef struct {
    int fd;
    int flags;
    off_t offset; /* of a file or folder, else -1 */
    kept_kind kind;
    /* The boot's own locks on it, bytes [from, to]; locks of requests are outside of these.
     * None: from > to. */
    off_t locked_from, locked_to;
    uint64_t locks; /* hash of the kernel's list of them; 0: none */
    /* Not a file: this request has used it; that use is known to have left no change. */
    bool used, settled;
    /* Datagrams: this process has sent some; it already had when this request began. */
    bool asked, asked_before;
    talk_state *talk; /* state of its protocol; NULL: the protocol is unknown */
} kept_descriptor;

/* Identity of a descriptor of the boot. libc may close one without a call of our functions, and
 * the next file gets its number. */
typedef struct {
    int fd;
    int access; /* its O_ACCMODE */
    uint64_t device, inode;
    /* A temporary file that was copied for this worker. If it was written to, the worker leaves. */
    bool is_copy;
} known_descriptor;

typedef struct {
    unsigned first_free; /* descriptors of requests begin at this number */
    descriptor_set open; /* when the worker began */
    kept_descriptor list[KEPT_MAX];
    uint32_t count;
    bool has_datagrams;
    known_descriptor known[KEPT_MAX];
    uint32_t known_count;
} kept_state;

PERSISTENT_STATE(kept_state, samovar_kept_state, kept);

/* Called when a worker begins, before it opens anything of its own: records the descriptors of
 * the boot. Replaces those that cannot be shared by the worker's own. `is_shared`: other workers
 * are forked from the same image. Returns false if a file could not be copied. */
bool samovar_kept_begin(kept_state *s, bool is_shared);

#endif
