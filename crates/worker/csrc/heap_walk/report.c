/* Writes heap walks into the folder of the setting `heap_walk`, each under its own name. A file
 * gets that name only when it is complete. */
#include "heap_walk/report.h"
#include "heap_walk/calls.h"
#include "heap_walk/kernel.h"
#include "heap_walk/process.h"
#include "heap_walk/tables.h"
#include "sapi/sapi.h"
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

enum {
    BUFFER_BYTES = 64 << 10,
    BYTES_MAX = 128 << 20,
    KEY_MAX = 1024,
    PLACE_MAX = 1024,
    ID_MAX = 64
};

/* A record, followed by the bytes of key, text and place. The CLI reads it in
 * leaks/heap_walk.rs. */
typedef struct {
    char kind, type;
    uint8_t closed, spare;
    uint16_t key_len, text_len, place_len, unused;
    uint32_t id, parent, count, handle, line, line_end;
    uint64_t hash, bytes;
} record;
_Static_assert(sizeof(record) == 56, "Record of leaks/heap_walk.rs");

typedef struct {
    int file;
    bool failed;
    size_t len, written;
    char buffer[BUFFER_BYTES];
} writer;

static writer out;
/* Number of heap walks of this process so far, for the reader. */
static uint32_t sequence;

bool samovar_reports(void) {
    return samovar_settings->heap_walk[0] != 0;
}

/* ---- the file ------------------------------------------------------------------------------ */

static void flush(void) {
    for (size_t at = 0; at < out.len && !out.failed;) {
        const ssize_t n = write(out.file, out.buffer + at, out.len - at);
        out.failed = n <= 0;
        at += n > 0 ? (size_t)n : 0;
    }
    out.written += out.len;
    out.len = 0;
}

static void put(const void *bytes, size_t len) {
    if (out.len + len > sizeof out.buffer) {
        flush();
    }
    memcpy(out.buffer + out.len, bytes, len);
    out.len += len;
}

static void take(void *to, const heap_walk_node *n) {
    (void)to;
    const size_t key = n->key.len < KEY_MAX ? n->key.len : KEY_MAX;
    const size_t text = n->text.len < KEY_MAX ? n->text.len : KEY_MAX;
    const size_t place = n->place.len < PLACE_MAX ? n->place.len : PLACE_MAX;
    const record r = {
        .kind = n->kind,
        .type = n->type,
        .closed = n->closed,
        .key_len = (uint16_t)key,
        .text_len = (uint16_t)text,
        .place_len = (uint16_t)place,
        .id = n->id,
        .parent = n->parent,
        .count = n->count,
        .handle = n->handle,
        .line = n->line,
        .line_end = n->line_end,
        .hash = n->hash,
        .bytes = n->bytes,
    };
    if (out.failed || out.written > BYTES_MAX) {
        out.failed = true;
        return;
    }
    put(&r, sizeof r);
    put(n->key.at, key);
    put(n->text.at, text);
    put(n->place.at, place);
}

/* ---- a heap walk --------------------------------------------------------------------------- */

static void tell_begin(heap_walk_walk *w, const char *id) {
    heap_walk_node n = {.kind = HEAP_WALK_BEGIN, .key = samovar_heap_walk_text(id)};
    n.count = sequence++;
    n.handle = (uint32_t)getpid();
    n.text = samovar_heap_walk_text(CG(unclean_shutdown) ? "fatal"
                                    : samovar_serving    ? "resident"
                                                         : "checkpoint");
    samovar_walk_fact(w, &n);
}

static void tell_end(heap_walk_walk *w) {
    const heap_walk_node n = {
        .kind = HEAP_WALK_END, .closed = w->cut, .type = 't', .count = w->nodes};
    w->sink(w->to, &n);
}

static void tell_all(heap_walk_walk *w, const char *id, const heap_walk_waiting *waiting) {
    tell_begin(w, id);
    if (CG(unclean_shutdown)) {
        tell_end(w); /* After a fatal error the state is not fit for a walk. */
        return;
    }
    samovar_heap_walk_kernel(w, out.file);
    samovar_heap_walk_holdings(w);
    samovar_calls_tell(w);
    samovar_heap_walk_settings(w);
    samovar_heap_walk_process(w);
    samovar_heap_walk_code(w);
    samovar_heap_walk_roots(w, waiting);
    samovar_heap_walk_unreached(w);
    tell_end(w);
}

/* Builds a file name from the letters and digits of an id, which may come from a client. */
static void name_file(char *to, const char *id, const char *ending) {
    char name[ID_MAX + 1];
    size_t len = 0;
    for (; id[len] && len < ID_MAX; len++) {
        name[len] = isalnum((unsigned char)id[len]) ? id[len] : '-';
    }
    name[len] = 0;
    snprintf(to, PATH_MAX, "%s/%s%s", samovar_settings->heap_walk, name, ending);
}

static void write_heap_walk(const char *id, const heap_walk_waiting *waiting) {
    char unfinished[PATH_MAX], finished[PATH_MAX];
    name_file(unfinished, id, ".part");
    name_file(finished, id, ".census");
    samovar_heap_walk_collect();
    out = (writer){.file = open(unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
    if (out.file < 0) {
        samovar_note("PHP Samovar: cannot write a heap walk to %s: %s", unfinished,
                     strerror(errno));
        return;
    }
    heap_walk_walk w;
    samovar_calls_pause = true;
    out.failed = !samovar_walk_begin(&w, take, NULL);
    /* A bailout of a queried function ends this walk, not the request. */
    zend_try {
        if (!out.failed) {
            tell_all(&w, id, waiting);
        }
    }
    zend_catch {
        out.failed = true;
    }
    zend_end_try();
    samovar_walk_end(&w);
    samovar_calls_pause = false;
    flush();
    close(out.file);
    if (out.failed || rename(unfinished, finished) != 0) {
        unlink(unfinished);
        samovar_note("PHP Samovar: a heap walk could not be written to %s", finished);
    }
}

void samovar_report_begin(const heap_walk_waiting *waiting) {
    char id[ID_MAX];
    snprintf(id, sizeof id, "begin-%d", getpid());
    write_heap_walk(id, waiting);
}

void samovar_report_request(const heap_walk_waiting *waiting) {
    if (samovar_current) {
        write_heap_walk(samovar_text(samovar_current, samovar_current->request_id), waiting);
    }
}
