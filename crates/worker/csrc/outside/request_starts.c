/* Extensions that begin something when PHP's request starts, and end it with the request. For a
 * booted application that is the boot: its requests have no such start, because it would discard
 * the extension's records of functions that still run. model/activate.c repeats the start of a few
 * extensions without such records. */
#include "outside/request_starts.h"
#include "boundary.h"
#include <php.h>
#include <php_ini.h>

static const char *const ADVICE =
    "it starts with a request of PHP, which is the boot: it has no data of single requests, or "
    "none at all. Run whole scripts (`disable_checkpoint`) to use it";

/* Agents of performance monitoring that begin a transaction in their request startup. */
static const struct {
    const char *module, *what;
} agents[] = {
    {"blackfire", "the extension blackfire"},     {"ddtrace", "the extension ddtrace"},
    {"elastic_apm", "the extension elastic_apm"}, {"instana", "the extension instana"},
    {"newrelic", "the extension newrelic"},       {"scoutapm", "the extension scoutapm"},
    {"skywalking", "the extension skywalking"},   {"tideways", "the extension tideways"},
};

static bool is_loaded(const char *name) {
    return zend_hash_str_exists(&module_registry, name, strlen(name));
}

/* Returns true if the text lists the word, with commas between. */
static bool lists(const char *text, const char *word) {
    const size_t len = strlen(word);
    for (const char *from = text; from; from = strchr(from, ',')) {
        from += strspn(from, ", ");
        if (strcspn(from, ", ") == len && memcmp(from, word, len) == 0) {
            return true;
        }
    }
    return false;
}

static const char *setting(const char *name) {
    const char *value = zend_ini_string(name, strlen(name), 0);
    return value ? value : "";
}

/* Its traces and step debugger are started for each request (model/debugger.c). */
static bool profiles(void) {
    const char *own = getenv("XDEBUG_MODE"); /* It overrides the setting. */
    const char *mode = own && *own ? own : setting("xdebug.mode");
    const char *when = setting("xdebug.start_with_request");
    /* An ini file without quotes turns `no` into "". */
    const bool never = *when == 0 || strcasecmp(when, "no") == 0;
    return is_loaded("xdebug") && !never && (lists(mode, "profile") || lists(mode, "gcstats"));
}

void samovar_request_starts_report(void) {
    if (profiles()) {
        samovar_finding("extension", "note", "Xdebug's profiler", "", ADVICE);
    }
    for (size_t i = 0; i < sizeof agents / sizeof agents[0]; i++) {
        if (is_loaded(agents[i].module)) {
            samovar_finding("extension", "note", agents[i].what, "", ADVICE);
        }
    }
}
