/* PHP's cache of resolved paths, as the image has it. An entry lives for realpath_cache_ttl. In
 * an image that is older, each request would find all of them expired and look every path up
 * again. So they do not expire there. Instead a worker checks, once in that time and after a
 * response, whether the paths still have the same targets. The few that do not are removed
 * before each request. */
#define _GNU_SOURCE
#include "outside/paths.h"
#include <php.h>
#include <limits.h>
#include <stdlib.h>
#include <zend_virtual_cwd.h>

typedef void visit_path(realpath_cache_bucket *entry, void *data);

static void for_each_path(visit_path *visit, void *data) {
    realpath_cache_bucket **buckets = realpath_cache_get_buckets();
    for (zend_long i = 0; i < realpath_cache_max_buckets(); i++) {
        for (realpath_cache_bucket *b = buckets[i], *next; b; b = next) {
            next = b->next;
            visit(b, data);
        }
    }
}

/* /proc/self and similar paths lead to another process in each worker. */
static bool is_own_path(const realpath_cache_bucket *b) {
    return strncmp(b->path, "/proc/", 6) == 0 || strncmp(b->path, "/dev/", 5) == 0;
}

static void settle(realpath_cache_bucket *b, void *data) {
    const bool *keep = data;
    if (is_own_path(b)) {
        realpath_cache_del(b->path, b->path_len);
    } else if (*keep) {
        b->expires = LONG_MAX;
    }
}

/* Time of the image itself: a worker may be forked from an old one. */
static time_t settled_at;
static zend_long ttl; /* seconds */

void samovar_paths_settle(bool keep) {
    settled_at = time(NULL);
    ttl = zend_ini_long("realpath_cache_ttl", sizeof("realpath_cache_ttl") - 1, 0);
    for_each_path(settle, &keep);
}

/* Checks only entries of the image: those of a request are gone with it. */
static void note_moved(realpath_cache_bucket *b, void *data) {
    paths_state *s = data;
    char now[PATH_MAX];
    if (b->expires == LONG_MAX && s->moved_count < MOVED_MAX &&
        (!realpath(b->path, now) || strcmp(now, b->realpath) != 0)) {
        s->moved[s->moved_count++] = b->key;
    }
}

/* A path that has moved once is looked up by each request from then on. */
void samovar_paths_look(paths_state *s) {
    const time_t now = time(NULL);
    if (s->looked_at == 0) {
        s->looked_at = settled_at;
    }
    if (ttl > 0 && now - s->looked_at > ttl) {
        s->looked_at = now;
        for_each_path(note_moved, s);
    }
}

static void forget(realpath_cache_bucket *b, void *data) {
    const paths_state *s = data;
    for (uint32_t i = 0; i < s->moved_count; i++) {
        if (s->moved[i] == b->key) {
            realpath_cache_del(b->path, b->path_len);
            return;
        }
    }
}

void samovar_paths_forget(const paths_state *s) {
    if (s->moved_count == MOVED_MAX) {
        realpath_cache_clean();
    } else if (s->moved_count > 0) {
        for_each_path(forget, (void *)s);
    }
}
