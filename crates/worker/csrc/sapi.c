/* activate, run, write: the SAPI module, PHP's view of the server, and the script model.
 *
 * Behaviour follows php-src sapi/fpm/fpm/fpm_main.c, whose answers are what applications expect. */
#include "samovar.h"
#include "compat.h"
#include "image.h"
#include <php_ini.h>
#include <zend_exceptions.h>
#include <zend_signal.h>
#include <zend_stream.h>
#include <ext/standard/basic_functions.h>
#include <ext/standard/head.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

/* A PHP without sessions has no such symbol. */
#pragma weak ps_globals

const samovar_head *samovar_current;
bool samovar_answered;
const char *samovar_app_script = "", *samovar_root = "";
size_t samovar_growth_bytes_max;

static const char SAPI_NAME[] = "samovar";
/* opcache looks for a known name when extensions start; the real one is put back afterwards. */
static const char OPCACHE_KNOWS[] = "fpm-fcgi";

/* ---- log ----------------------------------------------------------------------------------- */

static const char *request_id(void) {
    return samovar_current ? samovar_text(samovar_current, samovar_current->request_id) : "";
}

static void log_message(const char *message, int syslog_type) {
    (void)syslog_type;
    samovar_log(message, strlen(message), request_id());
}

void samovar_note(const char *format, ...) {
    char line[1024];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (len > 0) {
        samovar_log(line, MIN((size_t)len, sizeof line - 1), request_id());
    }
}

/* ---- write --------------------------------------------------------------------------------- */

/* What a boot puts out: nobody reads it, unless it turns out to stand above a checkpoint. */
enum { EARLY_BYTES_MAX = 1 << 20 };
static struct {
    char *at;
    size_t len;
} early;

static void keep_early_output(const char *bytes, size_t len) {
    len = MIN(len, EARLY_BYTES_MAX - early.len);
    if (len > 0) {
        early.at = perealloc(early.at, early.len + len, 1);
        memcpy(early.at + early.len, bytes, len);
        early.len += len;
    }
}

/* It goes to the log, so that nobody searches for it. */
void samovar_log_early_output(void) {
    if (early.len > 0) {
        samovar_log(early.at, early.len, "");
    }
    early.len = 0;
}

void samovar_replay_early_output(void) {
    if (early.len > 0) {
        php_header();
        samovar_write(early.at, early.len);
    }
}

static size_t ub_write(const char *bytes, size_t len) {
    if (!samovar_current) {
        keep_early_output(bytes, len);
        return len;
    }
    if (samovar_answered) {
        return len; /* Nobody reads what comes after fastcgi_finish_request(): the script runs on.
                     */
    }
    if (samovar_write(bytes, len) != 0) {
        php_handle_aborted_connection();
        return 0;
    }
    return len;
}

/* Whether flush() alone ends the time for headers is the version's to say. */
static void flush(void *server_context) {
    (void)server_context;
    if (!samovar_current || samovar_answered) {
        return;
    }
    if (SAMOVAR_FLUSH_SENDS_HEADERS) {
        sapi_send_headers();
    }
    if (!SG(headers_sent)) {
        return; /* Nothing was put out either. */
    }
    if (samovar_flush() != 0) {
        php_handle_aborted_connection();
    }
}

/* Most heads fit the array, so that they cost no allocation. */
typedef struct {
    char *at, first[2048];
    size_t len, room;
} lines;

static void begin_lines(lines *out) {
    out->at = out->first;
    out->len = 0;
    out->room = sizeof out->first;
}

static void end_lines(lines *out) {
    if (out->at != out->first) {
        efree(out->at);
    }
}

static void add_line(lines *out, const char *header, size_t len) {
    if (out->len + len + 1 > out->room) {
        out->room = MAX(out->room * 4, out->len + len + 1);
        if (out->at == out->first) {
            out->at = emalloc(out->room);
            memcpy(out->at, out->first, out->len);
        } else {
            out->at = erealloc(out->at, out->room);
        }
    }
    memcpy(out->at + out->len, header, len);
    out->at[out->len + len] = '\n';
    out->len += len + 1;
}

static bool is_named(const sapi_header_struct *h, const char *name, size_t len) {
    return h->header_len > len && strncasecmp(h->header, name, len) == 0;
}
#define IS_NAMED(h, name) is_named(h, name, sizeof(name) - 1)

/* The status that nginx + php-fpm would answer with: a status line beats a "Status:" header beats
 * the code, but with code 200 the header beats all (fpm_main.c, sapi_cgi_send_headers). */
static int answer_status(sapi_headers_struct *headers) {
    int code = SG(sapi_headers).http_response_code;
    const char *line = SG(sapi_headers).http_status_line;
    const char *space = line ? strchr(line, ' ') : NULL;
    if (code != 200 && space && space - line >= 5 && strncasecmp(line, "HTTP/", 5) == 0) {
        return atoi(space + 1);
    }
    for (zend_llist_element *e = headers->headers.head; e; e = e->next) {
        const sapi_header_struct *h = (const sapi_header_struct *)e->data;
        if (IS_NAMED(h, "Status:")) {
            return atoi(h->header + sizeof("Status:") - 1);
        }
    }
    return code;
}

/* nginx keeps the last of several, and clients disagree about which one counts. */
static const sapi_header_struct *last_content_type(const sapi_headers_struct *headers) {
    for (zend_llist_element *e = headers->headers.tail; e; e = e->prev) {
        const sapi_header_struct *h = (const sapi_header_struct *)e->data;
        if (IS_NAMED(h, "Content-Type:")) {
            return h;
        }
    }
    return NULL;
}

/* Whether headers are sent by the display of a fatal error. Of one beyond the memory limit they
 * are, because PHP gives up the output buffers first. */
static bool died(void) {
    const int fatal = E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR;
    return PG(last_error_message) && (PG(last_error_type) & fatal);
}

static void add_headers(lines *out, const sapi_headers_struct *headers,
                        const sapi_header_struct *content_type) {
    for (zend_llist_element *e = headers->headers.head; e; e = e->next) {
        const sapi_header_struct *h = (const sapi_header_struct *)e->data;
        const bool dropped = h->header_len == 0 || IS_NAMED(h, "Status:") ||
                             (h != content_type && IS_NAMED(h, "Content-Type:"));
        if (!dropped) {
            add_line(out, h->header, h->header_len);
        }
    }
}

static int send_headers(sapi_headers_struct *headers) {
    if (!samovar_current || samovar_answered || SG(request_info).no_headers) {
        return SAPI_HEADER_SENT_SUCCESSFULLY;
    }
    int status = answer_status(headers);
    if (samovar_serving && status == 200 && died()) {
        status = 500;
    }
    if (status < 100 || status > 999) {
        status = 200;
    }
    lines out;
    begin_lines(&out);
    add_headers(&out, headers, status == 304 ? NULL : last_content_type(headers));
    int failed = samovar_put_head(status, out.at, out.len);
    if (failed) {
        samovar_note("PHP Samovar: the answer's headers are too long (%zu bytes, at most 32768); "
                     "answering 500",
                     out.len);
        samovar_put_head(500, "", 0);
    }
    end_lines(&out);
    return SAPI_HEADER_SENT_SUCCESSFULLY;
}

bool samovar_send_interim(int status) {
    lines out;
    begin_lines(&out);
    add_headers(&out, &SG(sapi_headers), last_content_type(&SG(sapi_headers)));
    const bool sent = samovar_put_interim(status, out.at, out.len) == 0;
    end_lines(&out);
    return sent;
}

/* ---- read ---------------------------------------------------------------------------------- */

static size_t read_post(char *to, size_t count) {
    if (!samovar_current) {
        return 0;
    }
    size_t have = 0;
    while (have < count) {
        size_t n = samovar_read_body(to + have, count - have);
        if (n == 0) {
            break;
        }
        have += n;
    }
    return have;
}

static char *read_cookies(void) {
    return samovar_current ? (char *)samovar_optional(samovar_current, samovar_current->cookie)
                           : NULL;
}

/* ---- module -------------------------------------------------------------------------------- */

static int activate(void) {
    const samovar_head *r = samovar_current;
    if (samovar_serving || samovar_below_checkpoint) {
        return SUCCESS; /* Its .user.ini files were read at boot. */
    }
    if (r) {
        samovar_user_ini_activate(samovar_text(r, r->document_root), r->document_root.len,
                                  samovar_text(r, r->script_filename));
    } else {
        const char *name = strrchr(samovar_app_script, '/');
        size_t len = name ? (size_t)(name - samovar_app_script) : 0;
        samovar_user_ini_activate(samovar_app_script, len, samovar_app_script);
    }
    return SUCCESS;
}

static void ini_default(HashTable *ini, const char *name, const char *value) {
    zval zv;
    ZVAL_NEW_STR(&zv, zend_string_init(value, strlen(value), 1));
    zend_hash_str_update(ini, name, strlen(name), &zv);
}

/* What php-fpm sets before php.ini is read. */
static void ini_defaults(HashTable *ini) {
    ini_default(ini, "display_errors", "1");
}

static int startup(sapi_module_struct *module) {
    return php_module_startup(module, &samovar_module_entry);
}

static sapi_module_struct module = {(char *)SAPI_NAME,
                                    "Samovar",
                                    startup,
                                    php_module_shutdown_wrapper,
                                    activate,
                                    NULL, /* deactivate */
                                    ub_write,
                                    flush,
                                    NULL, /* get_stat */
                                    samovar_getenv,
                                    php_error,
                                    NULL, /* header_handler */
                                    send_headers,
                                    NULL, /* send_header */
                                    read_post,
                                    read_cookies,
                                    samovar_register_variables,
                                    log_message,
                                    NULL, /* get_request_time */
                                    NULL, /* terminate_process */
                                    STANDARD_SAPI_MODULE_PROPERTIES};

static void stay(int signal_number) {
    (void)signal_number;
}

/* Service managers signal every process of a service, but only the front knows when the last
 * request is answered: it tells the workers through the ring. Handlers, not SIG_IGN: that would be
 * inherited by programs PHP starts. Installed before zend_signal_startup(), which takes what it
 * finds for the default. */
static void leave_stopping_to_the_front(void) {
    const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    struct sigaction action = {.sa_handler = stay, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        sigaction(signals[i], &action, NULL);
    }
}

int samovar_php_startup(const samovar_options *options) {
    signal(SIGPIPE, SIG_IGN);
    leave_stopping_to_the_front();
    zend_signal_startup();
    samovar_app_script = options->app_script;
    samovar_root = options->root;
    samovar_checkpoint_after = options->checkpoint_after;
    samovar_growth_bytes_max = options->growth_bytes_max;
    samovar_frankenphp_worker = options->frankenphp_worker;
    samovar_frankenphp_rollback_every = options->rollback_every;
    samovar_log_debug = options->log_debug;
    /* One heap, whose end a rollback can put back. */
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    module.ini_defaults = ini_defaults;
    module.php_ini_path_override = (char *)options->ini_file;
    module.php_ini_ignore_cwd = 1;
    sapi_startup(&module);
    module.ini_entries = (char *)options->ini_entries;
    /* PHP_SAPI is registered from this name before the extensions start; the MINIT of our module
     * swaps it for one that opcache knows, and here the real one returns. */
    if (module.startup(&module) == FAILURE) {
        return -1;
    }
    sapi_module.name = (char *)SAPI_NAME;
    samovar_wrap_functions();
    pthread_atfork(samovar_survey_note_child, NULL, samovar_forked);
    samovar_reseed_startup();
    samovar_heap_learn();
    return 0;
}

void samovar_swap_sapi_name(void);
void samovar_swap_sapi_name(void) {
    sapi_module.name = (char *)OPCACHE_KNOWS;
}

void samovar_php_shutdown(void) {
    samovar_sapi_name_stays();
    php_module_shutdown();
    sapi_shutdown();
}

const char *samovar_php_version(void) {
    zval *version = zend_get_constant_str("PHP_VERSION", sizeof("PHP_VERSION") - 1);
    return version && Z_TYPE_P(version) == IS_STRING ? Z_STRVAL_P(version) : "unknown";
}

const char *samovar_php_built_for(void) {
    return PHP_VERSION;
}

/* ---- the script model ---------------------------------------------------------------------- */

void samovar_fill_request_info(const samovar_head *r) {
    sapi_request_info *info = &SG(request_info);
    const char *content_type = samovar_optional(r, r->content_type);
    SG(server_context) = (void *)r;
    SG(sapi_headers).http_response_code = 200;
    info->request_method = samovar_text(r, r->method);
    info->request_uri = (char *)samovar_text(r, r->script_name);
    info->query_string = (char *)samovar_text(r, r->query);
    info->path_translated = (char *)samovar_text(r, r->script_filename);
    info->content_type = content_type ? content_type : "";
    info->content_length = r->content_length < 0 ? 0 : r->content_length;
    info->proto_num = 1001;
    php_handle_auth_data(samovar_optional(r, r->authorization));
}

static void forget_request_info(void) {
    sapi_request_info *info = &SG(request_info);
    SG(server_context) = NULL;
    info->request_method = NULL;
    info->request_uri = NULL;
    info->query_string = NULL;
    info->path_translated = NULL;
    info->content_type = NULL;
    info->content_length = 0;
    info->cookie_data = NULL;
}

/* With session.auto_start a boot would begin the session of nobody. */
static zend_long hold_back_session(bool is_boot) {
    if (!is_boot || !&ps_globals) {
        return -1;
    }
    const zend_long auto_start = PS(auto_start);
    PS(auto_start) = 0;
    return auto_start;
}

static void release_session(zend_long auto_start) {
    if (auto_start >= 0) {
        PS(auto_start) = auto_start;
    }
}

static void execute(const char *script) {
    zend_file_handle file;
    zend_first_try {
        zend_stream_init_filename(&file, script);
        file.primary_script = true;
        php_execute_script(&file);
        zend_destroy_file_handle(&file);
    }
    zend_end_try();
}

/* Runs `script` as one PHP request; whatever client request is still open at its end is finished.
 */
static int run(const char *script, bool is_boot) {
    samovar_answered = false;
    samovar_outcome = SAMOVAR_RUN_DONE;
    const zend_long auto_start = hold_back_session(is_boot);
    if (php_request_startup() == SUCCESS) {
        release_session(auto_start);
        if (is_boot) {
            /* No headers, rather than headers sent: session settings are refused after those. */
            SG(request_info).no_headers = 1;
            samovar_watch_inclusions();
        }
        execute(script);
    }
    if (samovar_below_checkpoint) {
        samovar_end_below();
    }
    if (samovar_serving) {
        samovar_script_ended(); /* Its own loop, as FrankenPHP's workers have. */
    }
    samovar_unwatch_inclusions();
    php_request_shutdown(NULL);
    samovar_log_early_output();
    if (samovar_current) {
        samovar_current = NULL;
        samovar_finish(samovar_peak_bytes);
    }
    forget_request_info();
    return samovar_outcome;
}

int samovar_php_run(const samovar_head *head) {
    samovar_current = head;
    samovar_fill_request_info(head);
    return run(samovar_text(head, head->script_filename), false);
}

int samovar_php_boot(int place) {
    samovar_place = place;
    samovar_current = NULL;
    forget_request_info();
    SG(sapi_headers).http_response_code = 200;
    SG(request_info).path_translated = (char *)samovar_app_script;
    samovar_survey_begin();
    const int outcome = run(samovar_app_script, true);
    samovar_place = SAMOVAR_RUNS_SCRIPTS;
    return outcome;
}
