/* Use of the descriptors that a worker keeps and no rollback can restore: connections, pipes,
 * datagram sockets, terminals.
 *
 * The rule: a request that has used one ends its worker, unless the use is proven to have left
 * no change. interpose/traffic.c reports each use. The protocols of three databases are
 * followed, far enough to know two facts: each query has its response, and no query has changed
 * state that the server keeps for the session. A session that may have changed is reset
 * (db_session.c). For any other protocol the application may declare it (`Samovar\kept()`).
 *
 * All state is persistent: a rollback must not forget the traffic. */
#define _GNU_SOURCE
#include "outside/connection_protocols.h"
#include "boundary.h"
#include "memory/persistent.h"
#include "outside/boot.h"
#include <poll.h>
#include <sys/select.h>

kept_state *samovar_talk_parents;

void samovar_talk_forked(void) {
    samovar_talk_parents = samovar_persistent ? samovar_kept_state() : samovar_talk_parents;
}

static kept_descriptor *find_kept(int fd) {
    kept_state *s = samovar_persistent ? samovar_kept_state() : samovar_talk_parents;
    for (uint32_t i = 0; s && i < s->count; i++) {
        if (s->list[i].fd == fd) {
            return s->list[i].kind == KEPT_FILE ? NULL : &s->list[i];
        }
    }
    return NULL;
}

static void note_used(kept_descriptor *k) {
    k->used = true;
    k->settled = false;
    if (k->talk && samovar_talk_parents) {
        k->talk->lost = true;
    }
}

/* Readers by protocol; NULL: unknown protocol. */
static const talk_reading *const readings[] = {
    [TALK_UNKNOWN] = NULL,
    [TALK_MYSQL] = &samovar_reads_mysql,
    [TALK_PGSQL] = &samovar_reads_pgsql,
    [TALK_REDIS] = &samovar_reads_redis,
};

/* ---- reports of interposed functions ------------------------------------------------------- */

void samovar_talk_sent(int fd, const void *from, size_t len) {
    samovar_boot_sent(fd, from, len);
    kept_descriptor *k = find_kept(fd);
    if (!k) {
        return;
    }
    if (k->kind == KEPT_DATAGRAM) {
        k->asked = true;
        return;
    }
    note_used(k);
    if (k->talk && readings[k->talk->language]) {
        readings[k->talk->language]->sent(k->talk, from, len);
    }
}

void samovar_talk_received(int fd, const void *to, size_t len) {
    kept_descriptor *k = find_kept(fd);
    if (!k) {
        return;
    }
    note_used(k);
    if (k->talk && readings[k->talk->language]) {
        readings[k->talk->language]->received(k->talk, to, len);
    }
}

void samovar_talk_other(int fd) {
    kept_descriptor *k = find_kept(fd);
    if (k) {
        note_used(k);
        if (k->talk) {
            k->talk->lost = true;
        }
    }
}

static bool keeps_datagrams(void) {
    return samovar_persistent && samovar_kept_state()->has_datagrams;
}

/* Waiting for a datagram counts as taking it, because the response may come after this request.
 * Returns false if an earlier request has sent a query on this socket: incoming data may be the
 * response to it. */
bool samovar_talk_may_receive(int fd) {
    if (!keeps_datagrams()) {
        return true;
    }
    kept_descriptor *k = find_kept(fd);
    if (!k || k->kind != KEPT_DATAGRAM) {
        return true;
    }
    note_used(k);
    return !k->asked_before;
}

void samovar_talk_waits(const void *fds, unsigned long count) {
    const struct pollfd *p = fds;
    for (unsigned long i = 0; keeps_datagrams() && i < count; i++) {
        if (p[i].events & POLLIN) {
            samovar_talk_may_receive(p[i].fd);
        }
    }
}

void samovar_talk_selects(int count, const void *set) {
    for (int fd = 0; keeps_datagrams() && set && fd < count; fd++) {
        if (FD_ISSET(fd, (const fd_set *)set)) {
            samovar_talk_may_receive(fd);
        }
    }
}

/* ---- the end of a request ------------------------------------------------------------------ */

/* Warnings, errors and row counts of the previous visitor's statements stay until a statement of
 * this request replaces them. A statement that is not proven may read them as well. */
static void keep_results_apart(talk_state *t, unsigned effects) {
    const bool reads_messages = (effects & (SQL_OBSERVES | SQL_CHANGES)) != 0;
    const bool are_replaced =
        (!reads_messages || t->has_own_messages) && (!(effects & SQL_COUNTS) || t->has_asked);
    if (!t->began_clear && !are_replaced) {
        if (!t->session || !samovar_db_session_clear_results(t->session, t->fd)) {
            t->lost = true;
        }
        t->began_clear = true; /* From here on they are this request's own. */
    }
    if (!t->began_clear && (effects & SQL_FINDS) && !t->has_selected) {
        if (!t->session || !samovar_db_session_clear_found(t->fd)) {
            t->lost = true;
        }
        t->has_selected = true;
    }
    t->observes |= (effects & (SQL_OBSERVES | SQL_COUNTS | SQL_FINDS)) != 0;
}

void samovar_talk_note(talk_state *t, unsigned effects) {
    const db_session *s = t->session;
    t->changed |= !s || (effects & SQL_CHANGES) != 0 ||
                  ((effects & SQL_WRITES) != 0 && !s->has_proven_writes);
    t->inserted |= (effects & SQL_INSERTS) != 0;
    /* A process that the request has forked uses the connection at its own risk. */
    if (t->language == TALK_MYSQL && !samovar_talk_parents) {
        keep_results_apart(t, effects);
    }
}

void samovar_talk_note_execution(talk_state *t, unsigned effects) {
    t->has_asked = true;
    t->has_own_messages |= (effects & SQL_TABLES) != 0;
    t->executed = effects;
    t->awaits_result = true;
}

static bool is_at_rest(const talk_state *t) {
    return !t->lost && t->questions == 0 && !t->in_transaction && !t->prepares &&
           t->pending_count == 0 && t->sent.have == 0 && t->sent.items == 0;
}

static void forget_changes(talk_state *t) {
    t->changed = t->inserted = false;
    t->statements = 0;
    t->long_data_count = 0;
}

/* A proven connection stays as it is, apart from the last id. Any other one is reset. */
static bool returns_to_image(talk_state *t) {
    db_session *s = t->session;
    if (!t->changed && t->statements == 0 && t->long_data_count == 0 && !(t->always_resets && s)) {
        t->began_clear = s && t->observes;
        return !s || ((!t->inserted || samovar_db_session_clear_ids(s, t->fd)) &&
                      (!t->observes || samovar_db_session_clear_results(s, t->fd)) &&
                      samovar_db_session_refresh(s, t->fd));
    }
    t->began_clear = true;
    if (!s || !samovar_db_session_reset(s, t->fd)) {
        return false;
    }
    forget_changes(t);
    samovar_connection_was_reset();
    return true;
}

bool samovar_talk_return(int fd) {
    const kept_descriptor *k = find_kept(fd);
    talk_state *t = k ? k->talk : NULL;
    if (!t || !is_at_rest(t)) {
        return false;
    }
    const bool is_good = !k->used || returns_to_image(t);
    t->inserted = t->has_asked = t->has_own_messages = t->has_selected = t->awaits_result = false;
    t->prepared_count = 0;
    return is_good;
}

void samovar_talk_settle(int fd) {
    kept_descriptor *k = find_kept(fd);
    if (k) {
        k->settled = true;
    }
}

bool samovar_talk_is_kept(int fd) {
    return find_kept(fd) != NULL;
}

bool samovar_talk_begin(int fd, talk_language language, bool always_resets) {
    kept_descriptor *k = find_kept(fd);
    if (!k || k->kind != KEPT_CONNECTION) {
        return false;
    }
    k->talk = k->talk ? k->talk : samovar_shared_memory(sizeof *k->talk);
    if (k->talk) {
        k->talk->language = language;
        k->talk->fd = fd;
        k->talk->always_resets = always_resets;
        k->talk->began_clear = true;
        if (language != TALK_REDIS) {
            k->talk->session = samovar_db_session_begin(fd, language == TALK_MYSQL);
        }
        k->talk->sent.bytes = k->talk->sent_bytes;
        k->talk->sent.room = sizeof k->talk->sent_bytes;
        k->talk->received.bytes = k->talk->received_bytes;
        k->talk->received.room = sizeof k->talk->received_bytes;
    }
    return k->talk != NULL;
}

bool samovar_talk_ends(kept_state *s, bool unclean) {
    bool at_rest = true;
    for (uint32_t i = 0; i < s->count; i++) {
        kept_descriptor *k = &s->list[i];
        /* A process that the request has forked may have used it while it was settled. */
        const bool is_settled = k->settled && !unclean && !(k->talk && k->talk->lost);
        at_rest &= !k->used || is_settled;
        k->used = k->settled = false;
        k->asked_before |= k->asked;
    }
    return at_rest;
}
