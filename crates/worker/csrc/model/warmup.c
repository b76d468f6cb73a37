/* Warm-up: pages are rendered above the checkpoint, so that the code and data they load is part
 * of the image. This is done by requests, each in a child whose effects need not be undone, or
 * by Samovar\warmup(). */
#include "model/warmup.h"
#include "compat.h"
#include "loads/loads.h"
#include "model/activate.h"
#include "model/session.h"
#include "outside/request_reads.h"
#include "sapi/boot_globals.h"
#include "sapi/sapi.h"
#include <zend_exceptions.h>
#include <ext/pcre/php_pcre.h>
#include <ext/standard/basic_functions.h>
#include <ctype.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "functions/arginfo/prototypes.h"

enum {
    LIMIT_MS = 30000,           /* for one warm-up request */
    REPORT_BYTES_MAX = 8 << 20, /* of loaded classes and compiled patterns */
    PATTERNS_MAX = 2048         /* of one request: PHP keeps 4,096 */
};

/* Kinds of entries of the report, in their first byte. */
#define KIND_END 'e' /* the first entry: the request has ended normally */
#define KIND_CLASS 'c'
#define KIND_PATTERN 'p' /* compiled with the locale "C" */
#define KIND_LOCALE 'l'  /* LC_CTYPE of the next patterns */
#define KIND_LOCAL_PATTERN 'q'

bool samovar_warming;

/* The write end of the report, in the process that runs a warm-up request; else -1. */
static int report_to = -1;

/* ---- in the child -------------------------------------------------------------------------- */

/* Writes an entry and its NUL. Returns false if there is no reader, or the text contains a NUL. */
static bool report(char kind, const char *text, size_t len) {
    return memchr(text, 0, len) == NULL && write(report_to, &kind, 1) == 1 &&
           write(report_to, text, len) == (ssize_t)len && write(report_to, "", 1) == 1;
}

static void report_classes(void) {
    zend_string *name;
    zval *class;
    ZEND_HASH_MAP_FOREACH_STR_KEY_VAL(EG(class_table), name, class) {
        const zend_class_entry *ce = Z_PTR_P(class);
        if (Z_TYPE_P(class) == IS_PTR && ce->type == ZEND_USER_CLASS && name &&
            !(ce->ce_flags & ZEND_ACC_ANON_CLASS)) {
            report(KIND_CLASS, ZSTR_VAL(ce->name), ZSTR_LEN(ce->name));
        }
    }
    ZEND_HASH_FOREACH_END();
}

/* PHP keeps compiled patterns by the text of the pattern. If LC_CTYPE is not "C", its name is in
 * front of the text. */
static void report_patterns(void) {
    const zend_string *locale = BG(ctype_string);
    const size_t prefix = locale ? ZSTR_LEN(locale) : 0;
    uint32_t left = PATTERNS_MAX;
    zend_string *key;
    if (locale) {
        report(KIND_LOCALE, ZSTR_VAL(locale), prefix);
    }
    ZEND_HASH_MAP_FOREACH_STR_KEY(&PCRE_G(pcre_cache), key) {
        if (!key || left == 0) {
            continue;
        }
        left--;
        if (locale && zend_string_starts_with(key, locale)) {
            report(KIND_LOCAL_PATTERN, ZSTR_VAL(key) + prefix, ZSTR_LEN(key) - prefix);
        } else if (!isalnum((unsigned char)ZSTR_VAL(key)[0])) {
            report(KIND_PATTERN, ZSTR_VAL(key), ZSTR_LEN(key));
        }
    }
    ZEND_HASH_FOREACH_END();
}

/* Reports the classes and patterns of a warm-up request to the process that will be the image. */
void samovar_warm_up_report(void) {
    if (report_to >= 0 && report(KIND_END, "", 0)) {
        report_classes();
        report_patterns();
    }
}

/* ---- in the process that will be the image ------------------------------------------------- */

/* Reads all entries, until the other process has ended. */
static size_t read_report(int from, char *to, size_t room) {
    size_t have = 0;
    struct pollfd ready = {.fd = from, .events = POLLIN};
    while (have < room && poll(&ready, 1, LIMIT_MS) == 1) {
        ssize_t n = read(from, to + have, room - have);
        if (n <= 0) {
            return have;
        }
        have += (size_t)n;
    }
    return have;
}

static void load_class(const char *text) {
    zend_string *name = zend_string_init(text, strlen(text), 0);
    zend_lookup_class(name);
    zend_string_release(name);
    if (EG(exception)) {
        zend_clear_exception();
    }
}

/* Compiles a pattern, which PHP then keeps, so that it need not be compiled in each request.
 * Messages are suppressed, because the other process has already reported them. */
static void compile_pattern(const char *text) {
    zend_string *pattern = zend_string_init(text, strlen(text), 0);
    const int heard = EG(error_reporting);
    EG(error_reporting) = 0;
    pcre_get_compiled_regex_cache(pattern);
    EG(error_reporting) = heard;
    zend_string_release(pattern);
}

/* Sets LC_CTYPE as a request's setlocale() does, and restores it. */
static void compile_local_pattern(const char *locale, const char *text) {
    char *former = strdup(setlocale(LC_CTYPE, NULL));
    if (former && setlocale(LC_CTYPE, locale)) {
        zend_string *own = BG(ctype_string);
        BG(ctype_string) = zend_string_init(locale, strlen(locale), 0);
        compile_pattern(text);
        zend_string_release(BG(ctype_string));
        BG(ctype_string) = own;
        setlocale(LC_CTYPE, former);
    }
    free(former);
}

static void take_over(const char *report, size_t len) {
    const char *locale = "C";
    for (const char *at = report, *end = report + len; at < end; at += strlen(at) + 1) {
        switch (*at) {
        case KIND_CLASS:
            load_class(at + 1);
            break;
        case KIND_PATTERN:
            compile_pattern(at + 1);
            break;
        case KIND_LOCALE:
            locale = at + 1;
            break;
        case KIND_LOCAL_PATTERN:
            compile_local_pattern(locale, at + 1);
            break;
        default:
            break;
        }
    }
}

/* Runs one request below the checkpoint in a child, whose effects need not be undone. Then loads
 * the same classes and compiles the same patterns here. Returns true in the child. */
static bool warm_up_by_child(const samovar_head *head) {
    int ends[2];
    if (pipe(ends) != 0) {
        return false;
    }
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        report_to = ends[1];
        samovar_current = head;
        samovar_warming = true;
        return true;
    }
    close(ends[1]);
    char *told = malloc(REPORT_BYTES_MAX);
    size_t len = child > 0 && told ? read_report(ends[0], told, REPORT_BYTES_MAX - 1) : 0;
    close(ends[0]);
    if (child > 0) {
        kill(child, SIGKILL); /* It has ended, or its time is over. */
        waitpid(child, NULL, 0);
    }
    if (len > 0) {
        told[len] = 0;
        take_over(told, len);
    } else {
        samovar_note("PHP Samovar: the warm-up request %s did not finish",
                     samovar_text(head, head->target));
    }
    free(told);
    return false;
}

bool samovar_warm_up(void) {
    const samovar_head *head;
    while ((head = samovar_next_warmup())) {
        const uint32_t load =
            samovar_load_begin(LOAD_REQUEST, samovar_text(head, head->target), head->target.len);
        if (warm_up_by_child(head)) {
            return true;
        }
        samovar_load_end(load);
    }
    return false;
}

/* ---- Samovar\warmup() ---------------------------------------------------------------------- */

static void log_exception(void) {
    if (!zend_is_unwind_exit(EG(exception))) {
        zend_string *message = zval_get_string(zend_read_property_ex(
            EG(exception)->ce, EG(exception), ZSTR_KNOWN(ZEND_STR_MESSAGE), 1, &(zval){0}));
        samovar_note("PHP Samovar: the warm-up threw %s: %s", ZSTR_VAL(EG(exception)->ce->name),
                     ZSTR_VAL(message));
        zend_string_release(message);
    }
    zend_clear_exception();
}

static void abort_session(void) {
    zval name, returned;
    if (!samovar_has_sessions() || PS(session_status) != php_session_active) {
        return;
    }
    ZVAL_STRING(&name, "session_abort");
    call_user_function(NULL, NULL, &name, &returned, 0, NULL);
    zval_ptr_dtor(&name);
}

ZEND_FUNCTION(Samovar_warmup) {
    zend_fcall_info info;
    zend_fcall_info_cache cache;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_FUNC(info, cache)
    ZEND_PARSE_PARAMETERS_END();
    if (!samovar_is_boot() || samovar_below_checkpoint || samovar_serving) {
        return;
    }
    samovar_activate_startup();
    const bool was_paused = samovar_request_reads_pause;
    samovar_request_reads_pause = true;
    boot_globals superglobals;
    samovar_boot_globals_note(&superglobals);
    const sapi_headers_struct headers = SG(sapi_headers);
    zend_llist_init(&SG(sapi_headers).headers, sizeof(sapi_header_struct), headers.headers.dtor, 0);
    zval returned;
    ZVAL_UNDEF(&returned);
    info.retval = &returned;
    php_output_start_default();
    const int level = php_output_get_level();
    const uint32_t load = samovar_load_begin(LOAD_WARMUP, "", 0);
    zend_call_function(&info, &cache);
    zval_ptr_dtor(&returned);
    samovar_load_end(load);
    if (EG(exception)) {
        log_exception();
    }
    while (php_output_get_level() >= level) {
        php_output_discard();
    }
    abort_session();
    samovar_boot_globals_restore(&superglobals);
    samovar_request_reads_pause = was_paused;
    zend_llist_destroy(&SG(sapi_headers).headers);
    SG(sapi_headers) = headers;
}
