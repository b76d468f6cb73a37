/* Counts kernel resources by kind. When a kind has grown by one step, calls that open such
 * resources are recorded from then on (calls.c). When it grows by another step, it is logged
 * with the recorded line. Before the first step no call is recorded, and a check is cheap: the
 * lowest free descriptor moves up only when there are more descriptors, and most workers have no
 * children. */
#define _GNU_SOURCE
#include "heap_walk/holdings.h"
#include "heap_walk/calls.h"
#include "heap_walk/kernel.h"
#include "outside/descriptor.h"
#include <ctype.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    REQUESTS_BETWEEN = 64, /* between two reads of the clock */
    LOOK_MS = 200,         /* between checks of descriptors and children of a busy worker */
    MAPS_MS = 10000,       /* between checks of mappings: a hundred of them take 1 ms */
    STEP = 16,             /* growth of descriptors or mappings of one kind */
    STEP_CHILDREN = 4,
    KINDS_MAX = 256, /* counted separately; beyond that all counts restart */
    REPORTS_MAX = 5, /* per worker */
    NUMBER_MIN = 3,  /* digits, of a number that varies between names */
    HASH_MIN = 8
};

/* Resources of one kind. */
typedef struct {
    char kind;
    bool is_noted;
    char name[HOLDING_NAME];
    uint32_t now, before;
    uint64_t requests; /* when the count was `before` */
} kind_of_thing;

static struct {
    kind_of_thing *all;
    uint32_t count, reports;
    uint64_t requests, looked, timed; /* so far; at the last check; at the last read of the clock */
    int64_t looked_ms, maps_ms;       /* times of the last checks */
    int lowest_free;
    bool is_watched, has_children;
} holdings;

/* ---- names --------------------------------------------------------------------------------- */

/* Returns the length of a variable part of a name: a number, or text like that of uniqid() or a
 * hash. */
static size_t unlike_part(const char *at) {
    const size_t len = strspn(at, "0123456789abcdef"), digits = strspn(at, "0123456789");
    const bool is_number = digits == len && len >= NUMBER_MIN;
    return is_number || (len >= HASH_MIN && strcspn(at, "0123456789") < len) ? len : 0;
}

/* Writes the name of a kind of file. Files that differ only in a number are of one kind, and so
 * are PHP's temporary files. After the last slash, variable parts become `*`. Same as in
 * crates/cli/src/leaks/holdings.rs. */
static void put_file_name(char *to, const char *path) {
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    const size_t len = strcspn(base, " ");
    const bool is_phps = strncmp(base, "php", 3) == 0 && len == strlen("phpXXXXXX");
    size_t at = (size_t)snprintf(to, HOLDING_NAME, "%.*s%s", (int)(base - path), path,
                                 is_phps ? "php*" : "");
    at = at < HOLDING_NAME ? at : HOLDING_NAME - 1;
    base += is_phps ? len : 0;
    while (*base && at + 1 < HOLDING_NAME) {
        const size_t part = unlike_part(base);
        const size_t run = strspn(base, "0123456789abcdef");
        if (part > 0) {
            to[at++] = '*';
            base += part;
            continue;
        }
        for (size_t i = run > 0 ? run : 1; i-- > 0 && at + 1 < HOLDING_NAME;) {
            to[at++] = *base++;
        }
    }
    to[at] = 0;
}

static void put_name(char *to, const samovar_holding *held) {
    struct sockaddr_storage peer;
    if (held->kind == HEAP_WALK_CHILD) {
        snprintf(to, HOLDING_NAME, "child processes");
    } else if (held->name[0] == '/') {
        put_file_name(to, held->name);
    } else if (strncmp(held->name, "socket:", 7) == 0 &&
               samovar_is_connection(held->number, &peer)) {
        char text[DESCRIPTOR_TEXT];
        samovar_descriptor_peer_name(&peer, text);
        snprintf(to, HOLDING_NAME, "%.*s", HOLDING_NAME - 1, text);
    } else {
        /* `pipe:[4711]`: the kernel assigns the number. */
        snprintf(to, HOLDING_NAME, "a %.*s", (int)strcspn(held->name, ":"), held->name);
    }
}

static const char *unit_of(char kind) {
    return kind == HEAP_WALK_DESCRIPTOR ? "descriptors"
           : kind == HEAP_WALK_MAPPING  ? "mappings"
                                        : "processes";
}

static uint32_t step_of(char kind) {
    return kind == HEAP_WALK_CHILD ? STEP_CHILDREN : STEP;
}

/* ---- counts -------------------------------------------------------------------------------- */

static void count(const samovar_holding *held, void *data) {
    (void)data;
    char name[HOLDING_NAME];
    put_name(name, held);
    for (uint32_t i = 0; i < holdings.count; i++) {
        kind_of_thing *known = &holdings.all[i];
        if (known->kind == held->kind && strcmp(known->name, name) == 0) {
            known->now++;
            return;
        }
    }
    if (holdings.count < KINDS_MAX) {
        kind_of_thing *new = &holdings.all[holdings.count++];
        *new = (kind_of_thing){.kind = held->kind, .now = 1, .requests = holdings.looked};
        memcpy(new->name, name, sizeof name);
    }
}

/* Groups of kinds that are counted together. */
enum { OPEN = 1, MAPPED = 2, CHILDREN = 4 };

static bool is_of(char kind, int what) {
    return what & (kind == HEAP_WALK_DESCRIPTOR ? OPEN
                   : kind == HEAP_WALK_MAPPING  ? MAPPED
                                                : CHILDREN);
}

static void count_all(int what) {
    if (holdings.count == KINDS_MAX) {
        holdings.count = 0;
    }
    for (uint32_t i = 0; i < holdings.count; i++) {
        holdings.all[i].now = is_of(holdings.all[i].kind, what) ? 0 : holdings.all[i].now;
    }
    if (what & OPEN) {
        samovar_for_each_open(count, NULL);
    }
    if (what & MAPPED) {
        samovar_for_each_mapped(count, NULL);
    }
    if (what & CHILDREN) {
        samovar_for_each_child(count, NULL);
    }
}

/* ---- growth -------------------------------------------------------------------------------- */

static const char *const OPENERS[] = {SAMOVAR_OPENERS, NULL};
static const char *const MAPPERS[] = {SAMOVAR_MAPPERS, NULL};
static const char *const STARTERS[] = {"proc_open", "popen", "pcntl_fork", NULL};

static bool is_among(const char *name, const char *const *names) {
    while (*names && strcmp(*names, name) != 0) {
        names++;
    }
    return *names != NULL;
}

/* Returns the call that named such a file, else the call at the only recorded line. */
static const samovar_call_note *opened_by(const kind_of_thing *known) {
    const char *const *names = known->kind == HEAP_WALK_DESCRIPTOR ? OPENERS
                               : known->kind == HEAP_WALK_MAPPING  ? MAPPERS
                                                                   : STARTERS;
    const char *base = strrchr(known->name, '/');
    const samovar_call_note *notes, *only = NULL;
    const uint32_t noted = samovar_calls_noted(&notes);
    uint32_t places = 0;
    for (uint32_t i = 0; i < noted; i++) {
        if (!is_among(notes[i].name, names)) {
            continue;
        }
        char name[HOLDING_NAME];
        put_file_name(name, notes[i].argument);
        const char *argument = strrchr(name, '/');
        argument = argument ? argument + 1 : name;
        const size_t len = strlen(argument);
        if (base && len > 0 && strncmp(argument, base + 1, len) == 0 &&
            (!base[1 + len] || strcmp(base + 1 + len, " (deleted)") == 0)) {
            return &notes[i];
        }
        const bool is_same =
            only && only->line == notes[i].line && strcmp(only->file, notes[i].file) == 0;
        places += !is_same;
        only = &notes[i];
    }
    return places == 1 ? only : NULL;
}

static void report(const kind_of_thing *known, samovar_tell_hoard *tell) {
    samovar_hoard found = {.unit = unit_of(known->kind),
                           .grown = known->now - known->before,
                           .requests = holdings.requests - known->requests};
    memcpy(found.name, known->name, sizeof found.name);
    const samovar_call_note *by = opened_by(known);
    if (by) {
        snprintf(found.place, sizeof found.place, "%s:%u", by->file, by->line);
    }
    tell(&found);
    holdings.is_watched = ++holdings.reports < REPORTS_MAX;
}

/* Records calls from here on, because this kind grows. Before that there is no cost. */
static void note(kind_of_thing *known) {
    known->is_noted = true;
    samovar_calls_watch();
}

static void compare(kind_of_thing *known, samovar_tell_hoard *tell) {
    if (known->now >= known->before + step_of(known->kind)) {
        if (known->is_noted) {
            report(known, tell);
        } else {
            note(known);
        }
    } else if (known->now >= known->before) {
        return;
    } else {
        known->is_noted = false; /* The number falls again. */
    }
    known->before = known->now;
    known->requests = holdings.requests;
}

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void look(int what, samovar_tell_hoard *tell) {
    count_all(what);
    holdings.looked_ms = now_ms();
    if (what & MAPPED) {
        holdings.maps_ms = holdings.looked_ms;
    }
    for (uint32_t i = holdings.count; i-- > 0;) {
        if (is_of(holdings.all[i].kind, what)) {
            compare(&holdings.all[i], tell);
            if (holdings.all[i].now == 0) {
                holdings.all[i] = holdings.all[--holdings.count];
            }
        }
    }
    holdings.looked = holdings.requests;
}

/* ---- when ---------------------------------------------------------------------------------- */

static int lowest_free(void) {
    const int fd = (int)syscall(SYS_fcntl, STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0) {
        syscall(SYS_close, fd);
    }
    return fd >= 0 ? fd : INT_MAX;
}

static bool has_children(void) {
    siginfo_t none;
    return syscall(SYS_waitid, P_ALL, 0, &none, WEXITED | WNOHANG | WNOWAIT, NULL) == 0;
}

void samovar_holdings_begin(void) {
    if (!holdings.all) {
        holdings.all = calloc(KINDS_MAX, sizeof *holdings.all);
    }
    if (!holdings.all) {
        return;
    }
    holdings.requests = holdings.looked = holdings.timed = holdings.count = 0;
    holdings.looked_ms = holdings.maps_ms = now_ms();
    count_all(OPEN | MAPPED | CHILDREN);
    for (uint32_t i = 0; i < holdings.count; i++) {
        holdings.all[i].before = holdings.all[i].now;
    }
    holdings.lowest_free = lowest_free();
    holdings.is_watched = true;
}

void samovar_holdings_end(void) {
    holdings.is_watched = false;
}

/* Checks descriptors and children only where there may be more of them. */
static void look_around(int what, samovar_tell_hoard *tell) {
    const int free = lowest_free();
    const bool children = has_children();
    if (free >= holdings.lowest_free + STEP) {
        what |= OPEN;
    }
    if (what & OPEN || free < holdings.lowest_free) {
        holdings.lowest_free = free;
    }
    if (children || holdings.has_children) {
        what |= CHILDREN;
    }
    holdings.has_children = children;
    look(what, tell);
}

void samovar_holdings_request(samovar_tell_hoard *tell) {
    holdings.requests++;
    if (!holdings.is_watched || holdings.requests - holdings.timed < REQUESTS_BETWEEN) {
        return;
    }
    holdings.timed = holdings.requests;
    const int64_t now = now_ms();
    if (now - holdings.looked_ms >= LOOK_MS) {
        look_around(now - holdings.maps_ms >= MAPS_MS ? MAPPED : 0, tell);
    }
}

bool samovar_holdings_wanted(void) {
    return holdings.is_watched && holdings.requests - holdings.looked >= STEP;
}

void samovar_holdings_idle(samovar_tell_hoard *tell) {
    if (samovar_holdings_wanted()) {
        look_around(OPEN | MAPPED, tell);
    }
}
