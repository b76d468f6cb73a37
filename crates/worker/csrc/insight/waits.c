/* What a request waits for: each blocking call that made it sleep is charged to a peer.
 *
 * A clock stands on both sides of each call. Short ones were no wait. A longer one was, if the
 * kernel has counted a switch since: what takes long because there is much to copy is work. */
#define _GNU_SOURCE
#include "insight/ledger.h"
#include "insight/peer.h"
#include "insight/place.h"
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

/* How often this thread has gone to sleep. */
static long sleeps_so_far(void) {
    struct rusage usage;
    return syscall(SYS_getrusage, RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : -1;
}

/* ---- the table ----------------------------------------------------------------------------- */

static uint32_t index_of(ledger_state *l, wait_kind kind, const short_name *peer) {
    for (uint32_t i = 0; i < l->wait_count; i++) {
        const peer_waits *w = &l->waits[i];
        if (w->kind == kind && w->peer.len == peer->len &&
            memcmp(w->peer.text, peer->text, peer->len) == 0) {
            return i;
        }
    }
    if (l->wait_count >= WAITS_MAX) {
        /* No room: all that is left is one. */
        if (l->wait_count > WAITS_MAX) {
            return WAITS_MAX;
        }
        kind = WAIT_OTHER;
    }
    peer_waits *w = &l->waits[l->wait_count];
    w->kind = kind;
    w->times = 0;
    w->ns = 0;
    w->peer.len = 0;
    if (l->wait_count < WAITS_MAX) {
        w->peer = *peer;
    }
    return l->wait_count++;
}

static void add(ledger_state *l, uint32_t index, uint32_t times, uint64_t ns) {
    l->waits[index].times += times;
    l->waits[index].ns += ns;
    if (ns > l->longest_ns) {
        l->longest_ns = ns;
        samovar_place_note(&l->place);
    }
}

void samovar_waits_add(ledger_state *l, wait_kind kind, uint32_t times, uint64_t ns) {
    const short_name nobody = {.len = 0};
    add(l, index_of(l, kind, &nobody), times, ns);
}

/* ---- which peer ---------------------------------------------------------------------------- */

static uint32_t index_of_descriptor(ledger_state *l, int fd) {
    known_peer *known = &l->known[(unsigned)fd % KNOWN_PEERS];
    if (known->fd == fd && known->changes == samovar_descriptor_changes) {
        return known->waits;
    }
    short_name peer;
    const wait_kind kind = samovar_peer_of(fd, &peer);
    *known = (known_peer){fd, samovar_descriptor_changes, index_of(l, kind, &peer)};
    return known->waits;
}

/* While it connects, and when that fails, a socket has no peer that the kernel would tell. */
static void know_address(ledger_state *l, const blocking_call *call) {
    short_name peer;
    const wait_kind kind = samovar_peer_at(call->fd, call->what, call->count, &peer);
    l->known[(unsigned)call->fd % KNOWN_PEERS] =
        (known_peer){call->fd, samovar_descriptor_changes, index_of(l, kind, &peer)};
}

static uint32_t index_of_file(ledger_state *l, wait_kind kind, int fd) {
    short_name path;
    samovar_path_of(fd, &path);
    return index_of(l, kind, &path);
}

/* Of a call that was made. */
typedef struct {
    long result;
    int only; /* select(): the only descriptor that it waited for, or -1 */
    uint64_t ns;
} outcome;

/* What has no descriptor that would say more. */
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

static uint32_t index_of_plain(ledger_state *l, blocks_on on) {
    short_name name;
    samovar_short_name(&name, plain[on].name, strlen(plain[on].name));
    return index_of(l, plain[on].kind, &name);
}

/* Of several descriptors the one that was ready is the peer; without any, it was a sleep. */
static uint32_t index_of_ready(ledger_state *l, const blocking_call *call, const outcome *o) {
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

static uint32_t index_of_call(ledger_state *l, const blocking_call *call, const outcome *o) {
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

static bool has_slept(ledger_state *l) {
    const long before = l->sleeps;
    l->sleeps = sleeps_so_far();
    return l->sleeps != before;
}

/* After the call, whose errno stays. */
static void charge(ledger_state *l, const blocking_call *call, const outcome *o) {
    const int error = errno;
    if (call->on == BLOCKS_CONNECT) {
        know_address(l, call);
    }
    if (o->ns >= WAIT_NS_MIN && has_slept(l)) {
        add(l, index_of_call(l, call, o), 1, o->ns);
    }
    errno = error;
}

void samovar_waits_charge(const blocking_call *call, long result, int only, uint64_t ns) {
    ledger_state *l = samovar_ledger_now();
    if (!l) {
        return;
    }
    const outcome o = {.result = result, .only = only, .ns = ns};
    const int error = errno;
    if (call->on == BLOCKS_CONNECT) {
        know_address(l, call);
    }
    if (ns >= WAIT_NS_MIN) {
        l->sleeps_known = false; /* These were no calls of the watcher's. */
        add(l, index_of_call(l, call, &o), 1, ns);
    }
    errno = error;
}

long samovar_waits_watch(const blocking_call *call) {
    ledger_state *l = samovar_ledger;
    if (l->in_names) {
        return samovar_make_call(call); /* libc asks for names with modules whose calls are seen. */
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
