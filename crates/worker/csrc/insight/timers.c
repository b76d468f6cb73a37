/* Timers of a request. The objects and resources that own them are in functions/. */
#define _GNU_SOURCE
#include "insight/timers.h"
#include <sys/param.h>
#include <sys/resource.h>
#include <time.h>

/* All timers of the request that were not reported yet, the oldest first. */
static samovar_timer *first, *last;

samovar_timer *samovar_timers_first(void) {
    return first;
}

void samovar_timers_forget(void) {
    first = last = NULL;
}

void samovar_timer_list(samovar_timer *t) {
    if (t->is_listed) {
        return;
    }
    t->is_listed = true;
    t->next = NULL;
    t->previous = last;
    *(last ? &last->next : &first) = t;
    last = t;
}

void samovar_timer_unlist(samovar_timer *t) {
    if (!t->is_listed) {
        return;
    }
    t->is_listed = false;
    *(t->previous ? &t->previous->next : &first) = t->next;
    *(t->next ? &t->next->previous : &last) = t->previous;
}

/* ---- tags ---------------------------------------------------------------------------------- */

static int compare_names(Bucket *a, Bucket *b) {
    return zend_binary_strcmp(ZSTR_VAL(a->key), ZSTR_LEN(a->key), ZSTR_VAL(b->key),
                              ZSTR_LEN(b->key));
}

static const char *problem_of(const zend_string *name, const zval *value) {
    if (!name) {
        return "tags can only have string names (i.e. tags array cannot contain numeric indexes)";
    }
    return Z_TYPE_P(value) > IS_STRING ? "tags cannot have non-scalar values" : NULL;
}

HashTable *samovar_timer_tags(const HashTable *from, const char **problem) {
    HashTable *tags = zend_new_array(zend_hash_num_elements(from));
    zend_string *name;
    zval *value;
    ZEND_HASH_FOREACH_STR_KEY_VAL(from, name, value) {
        ZVAL_DEREF(value);
        *problem = problem_of(name, value);
        if (*problem) {
            zend_array_destroy(tags);
            return NULL;
        }
        zval text;
        ZVAL_STR(&text, zval_get_string(value));
        zend_hash_update(tags, name, &text);
    }
    ZEND_HASH_FOREACH_END();
    zend_hash_sort(tags, compare_names, false);
    return tags;
}

/* ---- clocks -------------------------------------------------------------------------------- */

static uint64_t ns_of(struct timeval time) {
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_usec * 1000;
}

/* The CPU clock is exact. Its split into user and system time comes from the kernel's ticks. */
timer_times samovar_times_now(void) {
    struct timespec cpu;
    struct rusage usage;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    getrusage(RUSAGE_THREAD, &usage);
    const uint64_t all = (uint64_t)cpu.tv_sec * 1000000000 + (uint64_t)cpu.tv_nsec;
    const uint64_t system = MIN(ns_of(usage.ru_stime), all);
    return (timer_times){.wall = samovar_now_ns(), .user = all - system, .system = system};
}

static uint64_t since(uint64_t now, uint64_t before) {
    return now > before ? now - before : 0;
}

/* The split moves by whole ticks, so a part may go backwards. The sum of the parts is right. */
static timer_times difference(timer_times now, timer_times before) {
    const uint64_t all = since(now.user + now.system, before.user + before.system);
    const uint64_t system = MIN(since(now.system, before.system), all);
    return (timer_times){since(now.wall, before.wall), all - system, system};
}

static timer_times sum_of(timer_times a, timer_times b) {
    return (timer_times){a.wall + b.wall, a.user + b.user, a.system + b.system};
}

/* ---- start, stop, report ------------------------------------------------------------------- */

void samovar_timer_start(samovar_timer *t) {
    t->is_running = true;
    t->began = samovar_times_now();
}

timer_times samovar_timer_read(const samovar_timer *t) {
    return t->is_running ? sum_of(t->sum, difference(samovar_times_now(), t->began)) : t->sum;
}

bool samovar_timer_stop(samovar_timer *t) {
    const bool was_running = t->is_running;
    t->sum = samovar_timer_read(t);
    t->is_running = false;
    return was_running;
}

/* Returns false if there is no room for the whole text. */
static bool put_part(timer_sum *key, const zend_string *text) {
    short_name part;
    samovar_short_name(&part, ZSTR_VAL(text), ZSTR_LEN(text));
    if (key->len + 1u + part.len > TIMER_TAGS_BYTES) {
        return false;
    }
    key->tags[key->len] = part.len;
    memcpy(key->tags + key->len + 1, part.text, part.len);
    key->len = (uint16_t)(key->len + 1 + part.len);
    return true;
}

/* Encodes the tags as in the report. */
static bool make_key(timer_sum *key, const HashTable *tags) {
    zend_string *name;
    zval *value;
    ZEND_HASH_FOREACH_STR_KEY_VAL(tags, name, value) {
        if (!put_part(key, name) || !put_part(key, Z_STR_P(value))) {
            return false;
        }
    }
    ZEND_HASH_FOREACH_END();
    return true;
}

/* Returns NULL if there is no room for another sum. */
static timer_sum *find_sum(request_accounting_state *l, const timer_sum *key) {
    for (uint32_t i = 0; i < l->timer_count; i++) {
        timer_sum *s = &l->timers[i];
        if (s->len == key->len && memcmp(s->tags, key->tags, key->len) == 0) {
            return s;
        }
    }
    if (l->timer_count == TIMER_SETS_MAX) {
        return NULL;
    }
    timer_sum *s = &l->timers[l->timer_count++];
    *s = *key;
    return s;
}

static void add_up(request_accounting_state *l, const samovar_timer *t) {
    timer_sum key = {.len = 0};
    timer_sum *s = make_key(&key, t->tags) ? find_sum(l, &key) : NULL;
    if (!s) {
        l->dropped++;
        return;
    }
    s->hits += t->hits;
    s->wall_ns += t->sum.wall;
    s->user_ns += t->sum.user;
    s->system_ns += t->sum.system;
}

void samovar_timer_tell(samovar_timer *t) {
    request_accounting_state *l = samovar_request_accounting_now();
    if (l && t->hits > 0) {
        add_up(l, t);
    }
    t->hits = 0;
    t->sum = (timer_times){0};
}
