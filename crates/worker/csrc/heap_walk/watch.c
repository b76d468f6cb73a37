/* When a resident worker's heap has grown by one step and the worker is idle, all its containers
 * are counted. When it has grown by another step, they are counted again, and the growth in
 * between is named in the log. This happens long before the heap reaches its limit. */
#include "heap_walk/watch.h"
#include "boundary.h"
#include "heap_walk/declared.h"
#include "heap_walk/holdings.h"
#include "heap_walk/tally.h"
#include "sapi/sapi.h"
#include <limits.h>
#include <time.h>
#include <unistd.h>

enum {
    STEPS = 8, /* per limits.growth_bytes_max */
    STEP_BYTES_MIN = 1 << 20,
    REPORTS_MAX = 5,   /* per worker */
    IDLE_MS_MIN = 900, /* a worker checks each second: a check after this time found no request */
    STEPS_UNASKED = 3, /* after these, a worker that is never idle is counted, too */
    MESSAGE_BYTES = 1024
};

static struct {
    size_t mark; /* heap size at the last walk */
    uint64_t requests, requests_at_mark;
    uint64_t waits_since_ms; /* 0: it has not checked since the last request */
    uint32_t reports;
    bool wanted, due, off;
} watch = {.off = true};

static size_t step(void) {
    const size_t step = samovar_settings->growth_bytes_max / STEPS;
    return step > STEP_BYTES_MIN ? step : STEP_BYTES_MIN;
}

void samovar_watch_begin(void) {
    watch.off = false;
    watch.mark = zend_memory_usage(0);
    watch.requests = watch.requests_at_mark = 0;
    samovar_holdings_begin();
}

void samovar_watch_end(void) {
    samovar_holdings_end();
    watch.off = true;
    watch.due = false;
}

static uint64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

bool samovar_watch_is_due(void) {
    if ((watch.off || !watch.wanted) && !samovar_holdings_wanted()) {
        return false;
    }
    const uint64_t now = now_ms();
    if (watch.waits_since_ms == 0) {
        watch.waits_since_ms = now;
    }
    watch.due = now - watch.waits_since_ms >= IDLE_MS_MIN;
    return watch.due;
}

bool samovar_idle_asked(void) {
    return watch.due;
}

/* ---- the log ------------------------------------------------------------------------------- */

static void add_place(char *to, size_t room, const grower *g) {
    if (!g->file_len ||
        (g->kind != HEAP_WALK_STATIC_PROPERTY && g->kind != HEAP_WALK_STATIC_VARIABLE)) {
        to[0] = 0;
        return;
    }
    char file[PATH_MAX];
    snprintf(file, sizeof file, "%.*s", (int)g->file_len, g->file);
    /* Uses the name of the root: values below it have no declaration of their own. */
    char root[GROWER_NAME];
    snprintf(root, sizeof root, "%s", g->name);
    char *variable = strrchr(root, '$');
    if (variable) {
        variable[strcspn(variable, "[->")] = 0;
    }
    snprintf(to, room, ", declared in %s:%u", file,
             samovar_declared_line(file, root, g->line, g->line_end));
}

/* Replaces control characters, because a name may contain any byte. */
static void one_line(char *text) {
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == 127) {
            *text = ' ';
        }
    }
}

/* Sends a line to the dashboard (crates/profile/src/loads/growth.rs), with tabs between the
 * fields. */
static void tell(const char *name, uint32_t grown, const char *unit, uint64_t requests,
                 uint64_t each, const char *place) {
    if (!samovar_loads_wanted()) {
        return;
    }
    char what[GROWER_NAME], at[PATH_MAX + 64], line[sizeof what + sizeof at + MESSAGE_BYTES];
    snprintf(what, sizeof what, "%s", name);
    snprintf(at, sizeof at, "%s", place);
    one_line(what);
    one_line(at);
    const int len = snprintf(
        line, sizeof line, "samovar-growth 1\ng\t%u\t%ld\t%u\t%llu\t%llu\t%s\t%s\t%s\nend\n",
        samovar_generation(), (long)getpid(), grown, (unsigned long long)requests,
        (unsigned long long)each, unit, at, what);
    if (len > 0 && (size_t)len < sizeof line) {
        samovar_loads_send(line, (size_t)len);
    }
}

static void warn(const char *message, int len, size_t room) {
    const samovar_event event = {
        .level = "warn",
        .message = message,
        .message_len = (size_t)len < room ? (size_t)len : room - 1,
        .context = "",
        .request_id = "",
    };
    samovar_log_event(&event);
}

static void report(const grower *g, uint64_t requests) {
    char place[PATH_MAX + 64], message[MESSAGE_BYTES + sizeof place];
    const double each = (double)g->grown / (double)requests;
    const uint64_t bytes_each = g->grown ? g->bytes / g->grown : 0;
    add_place(place, sizeof place, g);
    tell(g->name, g->grown, g->unit, requests, bytes_each,
         place[0] ? place + strlen(", declared in ") : "");
    const int len =
        snprintf(message, sizeof message,
                 "PHP Samovar: memory growth in a worker: %s +%u %s in %llu requests (%.3g per "
                 "request, %llu B each)%s",
                 g->name, g->grown, g->unit, (unsigned long long)requests, each,
                 (unsigned long long)bytes_each, place);
    warn(message, len, sizeof message);
}

/* Logs a growing kind of kernel resource that holdings.c has found. */
static void report_hoard(const samovar_hoard *found) {
    char message[MESSAGE_BYTES];
    const double each = (double)found->grown / (double)(found->requests ? found->requests : 1);
    tell(found->name, found->grown, found->unit, found->requests, 0, found->place);
    const int len =
        snprintf(message, sizeof message,
                 "PHP Samovar: resource growth in a worker: %s +%u %s in %llu requests (%.3g per "
                 "request)%s%s",
                 found->name, found->grown, found->unit, (unsigned long long)found->requests, each,
                 found->place[0] ? ", opened in " : "", found->place);
    warn(message, len, sizeof message);
}

/* ---- the heap walk ------------------------------------------------------------------------- */

/* Garbage is not growth, unless the application has disabled its collection. */
static bool has_grown(void) {
    samovar_heap_walk_collect();
    return zend_memory_usage(0) > watch.mark + step();
}

static void count(const heap_walk_waiting *waiting) {
    grower growers[GROWERS_MAX];
    watch.wanted = watch.due = false;
    if (!has_grown()) {
        return;
    }
    const uint64_t requests = watch.requests - watch.requests_at_mark;
    const uint32_t found = samovar_tally(waiting, growers);
    for (uint32_t i = 0; i < found && requests > 0; i++) {
        /* Ignores growth far below the maximum. */
        if (i == 0 || growers[i].bytes * GROWERS_MAX > growers[0].bytes) {
            report(&growers[i], requests);
        }
    }
    watch.reports += found > 0;
    watch.off = watch.reports == REPORTS_MAX;
    watch.mark = zend_memory_usage(0);
    watch.requests_at_mark = watch.requests;
}

void samovar_watch_request(const heap_walk_waiting *waiting) {
    samovar_holdings_request(report_hoard);
    watch.waits_since_ms = 0;
    if (watch.off) {
        return;
    }
    watch.requests++;
    const size_t usage = zend_memory_usage(0);
    watch.wanted = usage > watch.mark + step();
    if (usage > watch.mark + step() * STEPS_UNASKED) {
        count(waiting);
    }
}

void samovar_watch_idle(const heap_walk_waiting *waiting) {
    if (!watch.due) {
        return;
    }
    watch.due = false;
    samovar_holdings_idle(report_hoard);
    if (!watch.off && watch.wanted) {
        count(waiting);
    }
}
