/* activate: Xdebug decides whether a session or a trace is requested when a process calls its
 * first function, which was during the boot. Running its request startup again would forget the
 * functions that still run. But it has functions with which code requests a session, and starts
 * and stops a trace. They are called for each request. Its profiler has none: that is a finding
 * (outside/preflight.c). */
#include "model/debugger.h"
#include <php.h>
#include <php_globals.h>
#include <php_ini.h>

static zend_function *session_start, *trace_start, *trace_stop;
static enum { NO_TRACE, TRACE_IF_ASKED, TRACE_ALWAYS } traces;
static bool is_tracing;

/* ---- triggers ------------------------------------------------------------------------------ */

static const char *setting(const char *name) {
    const char *value = zend_ini_string(name, strlen(name), 0);
    return value ? value : "";
}

/* Returns true if the text lists the word, with commas between. */
static bool lists(const char *text, const char *word, size_t word_len) {
    for (const char *from = text; from; from = strchr(from, ',')) {
        from += strspn(from, ", ");
        const size_t until = strcspn(from, ", ");
        if (until == word_len && memcmp(from, word, word_len) == 0) {
            return true;
        }
    }
    return false;
}

/* As in Xdebug: any value is a trigger, unless the setting lists the valid ones. */
static bool is_trigger(const zval *value) {
    const char *listed = setting("xdebug.trigger_value");
    if (!*listed) {
        return true;
    }
    return Z_TYPE_P(value) == IS_STRING && Z_STRLEN_P(value) &&
           lists(listed, Z_STRVAL_P(value), Z_STRLEN_P(value));
}

static bool is_triggered(const char *const *names) {
    static const int sources[] = {TRACK_VARS_GET, TRACK_VARS_POST, TRACK_VARS_COOKIE};
    for (size_t s = 0; s < sizeof sources / sizeof sources[0]; s++) {
        const zval *source = &PG(http_globals)[sources[s]];
        for (const char *const *name = names; *name && Z_TYPE_P(source) == IS_ARRAY; name++) {
            const zval *value = zend_hash_str_find(Z_ARRVAL_P(source), *name, strlen(*name));
            if (value && is_trigger(value)) {
                return true;
            }
        }
    }
    return false;
}

/* ---- sessions and traces ------------------------------------------------------------------- */

static const char *const session_names[] = {"XDEBUG_TRIGGER", "XDEBUG_SESSION",
                                            "XDEBUG_SESSION_START", NULL};
static const char *const trace_names[] = {"XDEBUG_TRIGGER", "XDEBUG_TRACE", NULL};

static zend_function *function_named(const char *name) {
    return zend_hash_str_find_ptr(CG(function_table), name, strlen(name));
}

static void call(zend_function *function) {
    zval returned;
    ZVAL_UNDEF(&returned);
    zend_call_known_function(function, NULL, NULL, &returned, 0, NULL, NULL);
    zval_ptr_dtor(&returned);
}

/* An ini file without quotes turns `yes` and `no` into "1" and "". */
static bool is_one_of(const char *value, const char *word, const char *parsed) {
    return strcasecmp(value, word) == 0 || strcmp(value, parsed) == 0;
}

static void find_trace(void) {
    const char *when = setting("xdebug.start_with_request");
    trace_start = function_named("xdebug_start_trace");
    trace_stop = function_named("xdebug_stop_trace");
    traces = NO_TRACE;
    const char *own = getenv("XDEBUG_MODE"); /* It overrides the setting. */
    if (!trace_start || !trace_stop || is_one_of(when, "no", "") ||
        !lists(own && *own ? own : setting("xdebug.mode"), ZEND_STRL("trace"))) {
        return;
    }
    traces = is_one_of(when, "yes", "1") ? TRACE_ALWAYS : TRACE_IF_ASKED;
    if (traces == TRACE_ALWAYS) {
        call(trace_stop); /* That of the boot. */
    }
}

void samovar_debugger_startup(void) {
    session_start = function_named("xdebug_connect_to_client");
    is_tracing = false;
    if (session_start) {
        find_trace();
    }
}

void samovar_debugger_begin(void) {
    if (EXPECTED(!session_start)) {
        return;
    }
    if (is_triggered(session_names)) {
        call(session_start);
    }
    if (traces == TRACE_ALWAYS || (traces == TRACE_IF_ASKED && is_triggered(trace_names))) {
        call(trace_start);
        is_tracing = true;
    }
}

void samovar_debugger_end(void) {
    if (UNEXPECTED(is_tracing)) {
        is_tracing = false;
        call(trace_stop);
    }
}
