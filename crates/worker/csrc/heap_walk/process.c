/* Settings kept by the process and its extensions. */
#define _GNU_SOURCE
#include "heap_walk/process.h"
#include "sapi/sapi.h"
#include <ext/json/php_json.h>
#include <zend_exceptions.h>
#include <zend_smart_str.h>
#include <locale.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

extern char **environ;

enum { NAME_BYTES = 64, LINE_BYTES = 4096, VARIABLES_MAX = 4096 };

static void setting(heap_walk_walk *w, const char *name, const char *text) {
    heap_walk_node n = {.kind = HEAP_WALK_SETTING, .key = samovar_heap_walk_text(name)};
    n.text = samovar_heap_walk_text(text);
    samovar_walk_fact(w, &n);
}

/* ---- queried with functions of PHP --------------------------------------------------------- */

/* Functions that only return a setting when called without arguments. */
static const char *const QUESTIONS[] = {"date_default_timezone_get",
                                        "mb_internal_encoding",
                                        "mb_regex_encoding",
                                        "mb_language",
                                        "mb_substitute_character",
                                        "mb_detect_order",
                                        "mb_http_output",
                                        "mb_regex_set_options",
                                        "libxml_use_internal_errors",
                                        "libxml_get_errors",
                                        "locale_get_default",
                                        "iconv_get_encoding",
                                        "get_include_path",
                                        "session_name",
                                        "session_save_path",
                                        "session_module_name",
                                        "session_cache_limiter",
                                        "session_get_cookie_params",
                                        "pcntl_async_signals",
                                        "gc_enabled",
                                        "ignore_user_abort",
                                        "libxml_get_external_entity_loader"};

static void ask(heap_walk_walk *w, const char *function) {
    if (!zend_hash_str_exists(EG(function_table), function, strlen(function))) {
        return;
    }
    zval name, response;
    smart_str json = {0};
    ZVAL_UNDEF(&response);
    ZVAL_STRING(&name, function);
    const int heard = EG(error_reporting);
    EG(error_reporting) = 0;
    call_user_function(NULL, NULL, &name, &response, 0, NULL);
    EG(error_reporting) = heard;
    if (!EG(exception)) {
        php_json_encode_ex(&json, &response, PHP_JSON_PARTIAL_OUTPUT_ON_ERROR, 8);
    }
    if (EG(exception)) {
        zend_clear_exception();
    }
    smart_str_0(&json);
    if (json.s) {
        heap_walk_node n = {.kind = HEAP_WALK_SETTING, .key = samovar_heap_walk_text(function)};
        n.text = samovar_heap_walk_string(json.s);
        n.count = Z_TYPE(response) == IS_ARRAY ? zend_hash_num_elements(Z_ARRVAL(response)) : 0;
        samovar_walk_fact(w, &n);
    }
    smart_str_free(&json);
    zval_ptr_dtor(&response);
    zval_ptr_dtor(&name);
}

/* ---- queried from libc and the kernel ------------------------------------------------------ */

static void add_locale(heap_walk_walk *w) {
    static const struct {
        int category;
        const char *name;
    } categories[] = {{LC_CTYPE, "locale (LC_CTYPE)"},       {LC_NUMERIC, "locale (LC_NUMERIC)"},
                      {LC_TIME, "locale (LC_TIME)"},         {LC_COLLATE, "locale (LC_COLLATE)"},
                      {LC_MONETARY, "locale (LC_MONETARY)"}, {LC_MESSAGES, "locale (LC_MESSAGES)"}};
    for (size_t i = 0; i < sizeof categories / sizeof categories[0]; i++) {
        const char *now = setlocale(categories[i].category, NULL);
        setting(w, categories[i].name, now ? now : "?");
    }
}

static void add_signals(heap_walk_walk *w) {
    char name[NAME_BYTES];
    for (int n = 1; n < SIGRTMIN; n++) {
        struct sigaction now;
        if (sigaction(n, NULL, &now) == 0) {
            snprintf(name, sizeof name, "signal %d", n);
            setting(w, name,
                    now.sa_handler == SIG_DFL   ? "default"
                    : now.sa_handler == SIG_IGN ? "ignored"
                                                : "handled");
        }
    }
    uint64_t mask = 0;
    char text[NAME_BYTES];
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof mask);
    snprintf(text, sizeof text, "%#llx", (unsigned long long)mask);
    setting(w, "blocked signals", text);
}

static void add_limits(heap_walk_walk *w) {
    static const struct {
        int resource;
        const char *name;
    } limits[] = {{RLIMIT_NOFILE, "limit of open files"},
                  {RLIMIT_CORE, "limit of core files"},
                  {RLIMIT_AS, "limit of address space"},
                  {RLIMIT_CPU, "limit of CPU time"}};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct rlimit now;
        char text[NAME_BYTES];
        if (getrlimit(limits[i].resource, &now) == 0) {
            snprintf(text, sizeof text, "%llu of %llu", (unsigned long long)now.rlim_cur,
                     (unsigned long long)now.rlim_max);
            setting(w, limits[i].name, text);
        }
    }
}

static void add_identity(heap_walk_walk *w) {
    char text[NAME_BYTES], folder[LINE_BYTES];
    snprintf(text, sizeof text, "uid %u %u gid %u %u", getuid(), geteuid(), getgid(), getegid());
    setting(w, "user and group", text);
    const long mask = syscall(SYS_umask, 077);
    syscall(SYS_umask, mask);
    snprintf(text, sizeof text, "%04lo", (unsigned long)mask);
    setting(w, "umask", text);
    setting(w, "working directory", getcwd(folder, sizeof folder) ? folder : "?");
    snprintf(text, sizeof text, "%ld", syscall(SYS_getpriority, PRIO_PROCESS, 0));
    setting(w, "priority", text);
    struct itimerval timer = {0};
    getitimer(ITIMER_REAL, &timer);
    setting(w, "alarm", timerisset(&timer.it_value) ? "set" : "none");
}

static void add_environment(heap_walk_walk *w) {
    for (uint32_t i = 0; environ && environ[i] && i < VARIABLES_MAX; i++) {
        const char *equals = strchr(environ[i], '=');
        if (equals) {
            heap_walk_node n = {.kind = HEAP_WALK_ENVIRONMENT};
            n.key = (heap_walk_text){environ[i], (size_t)(equals - environ[i])};
            n.text = samovar_heap_walk_text(equals + 1);
            samovar_walk_fact(w, &n);
        }
    }
}

void samovar_heap_walk_process(heap_walk_walk *w) {
    for (size_t i = 0; i < sizeof QUESTIONS / sizeof QUESTIONS[0]; i++) {
        ask(w, QUESTIONS[i]);
    }
    add_locale(w);
    add_signals(w);
    add_limits(w);
    add_identity(w);
    add_environment(w);
}
