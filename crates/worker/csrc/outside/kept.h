/* The descriptors of the boot that a worker keeps open. */
#ifndef SAMOVAR_OUTSIDE_KEPT_H
#define SAMOVAR_OUTSIDE_KEPT_H

#include "outside/descriptor.h"
#include "outside/language.h"

enum { KEPT_MAX = 64 }; /* connections and files that an image keeps open */

typedef enum {
    KEPT_FILE, /* or a folder: set back */
    KEPT_CONNECTION,
    KEPT_DATAGRAM,
    KEPT_OTHER /* a pipe, a terminal, a socket without a peer, whatever else there is */
} kept_kind;

/* A descriptor of the image that a request may use, and what is put back after it. */
typedef struct {
    int fd;
    int flags;
    off_t offset; /* of a file or folder, else -1 */
    kept_kind kind;
    /* The boot's own locks on it, bytes [from, to]: the request's lie outside. None: from > to. */
    off_t locked_from, locked_to;
    uint64_t locks; /* what the kernel says of them, in short; 0: none */
    /* No file: this request has used it; that is known to have left nothing. */
    bool used, settled;
    /* Datagrams: this process has sent some; it had when this request began. */
    bool asked, asked_before;
    talk_state *talk; /* Read along; NULL: nobody here knows the language. */
} kept_descriptor;

/* What a descriptor of the boot is. libc may close one where none of our functions is called, and
 * the next file gets its number. */
typedef struct {
    int fd;
    int access; /* O_ACCMODE of it */
    uint64_t device, inode;
    /* Of a temporary file, for this worker: when it was written to, the worker leaves. */
    bool is_copy;
} known_descriptor;

typedef struct {
    unsigned first_free; /* descriptor number: the request's begin here */
    descriptor_set open; /* when the worker began */
    kept_descriptor list[KEPT_MAX];
    uint32_t count;
    bool has_datagrams;
    known_descriptor known[KEPT_MAX];
    uint32_t known_count;
} kept_state;

/* When a worker begins, before it opens anything of its own: which those of the boot are. Gives it
 * its own of what cannot be shared; false: a file could not be copied. */
bool samovar_kept_begin(kept_state *s);

#endif
