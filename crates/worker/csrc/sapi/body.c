/* read: reads the request's body from the ring. Until a checkpoint's resume hook has decided
 * whether the image still fits, the data that is read is also kept. So the whole script finds
 * it. */
#define _GNU_SOURCE
#include "sapi/body.h"
#include "boundary.h"
#include "memory/image.h"
#include <unistd.h>

SAMOVAR_OF_REQUEST static bool keeping;
/* In a file without a name; -1: nothing was kept. */
static int kept = -1;
static off_t kept_len, read_again;
static bool is_lost;

static void keep(const char *bytes, size_t len) {
    if (kept < 0) {
        kept = samovar_memory_file();
    }
    if (kept < 0 || !samovar_write_all(kept, bytes, len, kept_len)) {
        is_lost = true;
    }
    kept_len += (off_t)len;
}

size_t samovar_body_read(char *to, size_t room) {
    if (read_again < kept_len && !keeping) {
        const ssize_t n = pread(kept, to, room, read_again);
        read_again += n > 0 ? n : 0;
        return n > 0 ? (size_t)n : 0;
    }
    const size_t n = samovar_read_body(to, room);
    if (keeping && n > 0) {
        keep(to, n);
    }
    return n;
}

void samovar_body_keep(void) {
    keeping = true;
}

bool samovar_body_rewind(void) {
    keeping = false;
    return !is_lost;
}

void samovar_body_forget(void) {
    keeping = false;
    if (kept >= 0) {
        close(kept);
    }
    kept = -1;
    kept_len = read_again = 0;
}
