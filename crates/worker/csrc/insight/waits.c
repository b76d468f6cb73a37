/* Waits of a request: each blocking call that made it sleep is charged to a peer.
 *
 * The clock is read before and after each call. Short calls are not waits. A longer call is a
 * wait if the kernel has counted a context switch since: a call that takes long because it
 * copies a lot of data is work. */
#define _GNU_SOURCE
#include "insight/request_accounting.h"
#include "insight/peer.h"
#include "insight/place.h"
#include "insight/timeline.h"
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

/* Returns the number of times this thread has gone to sleep. */
static long sleeps_so_far(void) {
    struct rusage usage;
    return syscall(SYS_getrusage, RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : -1;
}

/* ---- the table ----------------------------------------------------------------------------- */

static uint32_t index_of(request_accounting_state *l, wait_kind kind, const short_name *peer) {
    for (uint32_t i = 0; i < l->wait_count; i++) {
        const peer_waits *w = &l->waits[i];
        if (w->kind == kind && w->peer.len == peer->len &&
            memcmp(w->peer.text, peer->text, peer->len) == 0) {
            return i;
        }
    }
    if (l->wait_count == WAITS_MAX) {
        /* The table is full: all other peers of a kind share one entry. */
        peer_waits *w = &l->waits[WAITS_MAX + kind];
        if (!(l->other_kinds & 1u << kind)) {
            l->other_kinds |= 1u << kind;
            *w = (peer_waits){.kind = kind};
            samovar_short_name(&w->peer, "(other)", sizeof "(other)" - 1);
        }
        return WAITS_MAX + kind;
    }
    l->waits[l->wait_count] = (peer_waits){.kind = kind, .peer = *peer};
    return l->wait_count++;
}

static void add(request_accounting_state *l, uint32_t index, uint32_t times, uint64_t ns) {
    l->waits[index].times += times;
    l->waits[index].ns += ns;
    if (ns > l->longest_ns) {
        l->longest_ns = ns;
        samovar_place_note(&l->place);
    }
}

/* Adds a wait that has just ended. */
static void add_span(request_accounting_state *l, uint32_t index, uint64_t ns) {
    add(l, index, 1, ns);
    samovar_timeline_add(SPAN_WAIT, index, samovar_now_ns() - ns, ns);
}

void samovar_waits_add(request_accounting_state *l, wait_kind kind, uint32_t times, uint64_t ns) {
    const short_name nobody = {.len = 0};
    add(l, index_of(l, kind, &nobody), times, ns);
}

/* ---- the peer ------------------------------------------------------------------------------ */

static uint32_t index_of_descriptor(request_accounting_state *l, int fd) {
    known_peer *known = &l->known[(unsigned)fd % KNOWN_PEERS];
    if (known->fd == fd && known->changes == samovar_descriptor_changes) {
        return known->waits;
    }
    short_name peer;
    const wait_kind kind = samovar_peer_of(fd, &peer);
    *known = (known_peer){fd, samovar_descriptor_changes, index_of(l, kind, &peer)};
    return known->waits;
}

/* While a socket connects, and after a failed connect, the kernel reports no peer. */
static void know_address(request_accounting_state *l, const blocking_call *call) {
    short_name peer;
    const wait_kind kind = samovar_peer_at(call->fd, call->what, call->count, &peer);
    l->known[(unsigned)call->fd % KNOWN_PEERS] =
        (known_peer){call->fd, samovar_descriptor_changes, index_of(l, kind, &peer)};
}

static uint32_t index_of_file(request_accounting_state *l, wait_kind kind, int fd) {
    short_name file;
    samovar_file_of(fd, &file);
    return index_of(l, kind, &file);
}

/* Result of a call that was made. */
typedef struct {
    long result;
    int only; /* select(): the only descriptor it waited for, or -1 */
    uint64_t ns;
} outcome;

/* Calls without a descriptor that identifies the peer. */
static const struct {
    wait_kind kind;
    const char *name;
} plain[] = {
    [BLOCKS_ACCEPT] = {WAIT_OTHER, "accept"}, [BLOCKS_POLL] = {WAIT_POLL, ""},
    [BLOCKS_SELECT] = {WAIT_POLL, ""},        [BLOCKS_EPOLL] = {WAIT_POLL, ""},
    [BLOCKS_SLEEP] = {WAIT_SLEEP, ""},        [BLOCKS_QUEUE] = {WAIT_LOCK, "System V"},
    [BLOCKS_NAMES] = {WAIT_DNS, ""},          [BLOCKS_CHILD] = {WAIT_PIPE, "child"},
    [BLOCKS_SIGNAL] = {WAIT_OTHER, "signal"},
};

static uint32_t index_of_plain(request_accounting_state *l, blocks_on on) {
    short_name name;
    samovar_short_name(&name, plain[on].name, strlen(plain[on].name));
    return index_of(l, plain[on].kind, &name);
}

/* Of several descriptors, the one that was ready is the peer. Without descriptors the call was a
 * sleep. */
static uint32_t index_of_ready(request_accounting_state *l, const blocking_call *call,
                               const outcome *o) {
    if (call->count == 0) {
        return index_of_plain(l, BLOCKS_SLEEP);
    }
    int fd = o->only;
    if (call->on == BLOCKS_POLL) {
        fd = samovar_polled(call, o->result);
    } else if (o->result > 0) {
        fd = samovar_selected(call);
    }
    return fd >= 0 ? index_of_descriptor(l, fd) : index_of_plain(l, call->on);
}

static uint32_t index_of_call(request_accounting_state *l, const blocking_call *call,
                              const outcome *o) {
    switch (call->on) {
    case BLOCKS_READ:
    case BLOCKS_WRITE:
    case BLOCKS_CONNECT:
        return index_of_descriptor(l, call->fd);
    case BLOCKS_POLL:
    case BLOCKS_SELECT:
        return index_of_ready(l, call, o);
    case BLOCKS_LOCK:
        return index_of_file(l, WAIT_LOCK, call->fd);
    case BLOCKS_DISK:
        return index_of_file(l, WAIT_FILE, call->fd);
    default:
        return index_of_plain(l, call->on);
    }
}

/* ---- the watcher --------------------------------------------------------------------------- */

static bool has_slept(request_accounting_state *l) {
    const long before = l->sleeps;
    l->sleeps = sleeps_so_far();
    return l->sleeps != before;
}

/* Charges a call that was made. Preserves its errno. */
static void charge(request_accounting_state *l, const blocking_call *call, const outcome *o) {
    const int error = errno;
    if (call->on == BLOCKS_CONNECT) {
        know_address(l, call);
    }
    if (o->ns >= WAIT_NS_MIN && has_slept(l)) {
        add_span(l, index_of_call(l, call, o), o->ns);
    }
    errno = error;
}

void samovar_waits_charge(const blocking_call *call, long result, int only, uint64_t ns) {
    request_accounting_state *l = samovar_request_accounting_now();
    if (!l) {
        return;
    }
    const outcome o = {.result = result, .only = only, .ns = ns};
    const int error = errno;
    if (call->on == BLOCKS_CONNECT) {
        know_address(l, call);
    }
    if (ns >= WAIT_NS_MIN) {
        l->sleeps_known = false; /* The watcher did not see these calls. */
        add_span(l, index_of_call(l, call, &o), ns);
    }
    errno = error;
}

long samovar_waits_watch(const blocking_call *call) {
    request_accounting_state *l = samovar_request_accounting;
    if (l->in_names) {
        return samovar_make_call(call); /* Name lookups of libc's modules pass here, too. */
    }
    if (!l->sleeps_known) {
        l->sleeps_known = true;
        l->sleeps = sleeps_so_far();
    }
    outcome o = {.only = call->on == BLOCKS_SELECT ? samovar_selected_alone(call) : -1};
    l->in_names = call->on == BLOCKS_NAMES;
    const uint64_t from = samovar_now_ns();
    o.result = samovar_make_call(call);
    o.ns = samovar_now_ns() - from;
    l->in_names = false;
    if (o.ns >= WAIT_NS_MIN || call->on == BLOCKS_CONNECT) {
        charge(l, call, &o);
    }
    return o.result;
}
