/* activate, write: the SAPI module, PHP's view of the server. model/ decides when which script
 * runs.
 *
 * Behaviour follows php-src sapi/fpm/fpm/fpm_main.c, because applications expect its responses. */
#define _GNU_SOURCE
#include "sapi/sapi.h"
#include "compat.h"
#include "insight/request_accounting.h"
#include "sapi/body.h"
#include "sapi/user_ini.h"
#include "sapi/variables.h"
#include <stddef.h>
#include <zend_stream.h>
#include <ext/standard/basic_functions.h>
#include <ext/standard/head.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

/* opcache checks for a known name when extensions start. The real one is restored afterwards. */
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

/* Output of a boot. It has no reader, unless it was made above a checkpoint. */
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

/* Writes the early output to the log, so that it can be found. */
void samovar_log_early_output(void) {
    if (early.len > 0) {
        samovar_log(early.at, early.len, "");
    }
    early.len = 0;
}

void samovar_drop_early_output(void) {
    early.len = 0;
}

void samovar_replay_early_output(void) {
    if (early.len > 0) {
        php_header();
        samovar_write(early.at, early.len);
    }
}

/* Ends the script, unless it ignores that its client is gone. The front closes the connection of a
 * request whose time is over, so a script that writes can notice that before the signal comes.
 * The signal must not end its shutdown functions then. */
static void abort_script(void) {
    if (!PG(ignore_user_abort) && samovar_overrun()) {
        samovar_overrun_ended_script = true;
    }
    php_handle_aborted_connection();
}

static size_t ub_write(const char *bytes, size_t len) {
    if (!samovar_current) {
        keep_early_output(bytes, len);
        return len;
    }
    if (samovar_responded) {
        /* Output after fastcgi_finish_request() has no reader. The script continues. */
        return len;
    }
    if (samovar_write(bytes, len) != 0) {
        abort_script();
        return 0;
    }
    return len;
}

/* The PHP version determines whether flush() without output sends the headers. */
static void flush(void *server_context) {
    (void)server_context;
    if (!samovar_current || samovar_responded) {
        return;
    }
    if (SAMOVAR_FLUSH_SENDS_HEADERS) {
        sapi_send_headers();
    }
    if (!SG(headers_sent)) {
        return; /* There was no output either. */
    }
    if (samovar_flush() != 0) {
        abort_script();
    }
}

/* Longer reason phrases are left out. */
#define REASON_BYTES_MAX 256

/* Most heads fit into the array, and cost no allocation. */
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

/* Returns the status that nginx with php-fpm would send. A status line takes precedence over a
 * "Status:" header, and the header over the code. With code 200 the header takes precedence over
 * all (fpm_main.c, sapi_cgi_send_headers). `text`: the code with the text after it; NULL if only
 * the code is known. */
static int response_status(sapi_headers_struct *headers, const char **text) {
    int code = SG(sapi_headers).http_response_code;
    const char *line = SG(sapi_headers).http_status_line;
    const char *space = line ? strchr(line, ' ') : NULL;
    if (code != 200 && space && space - line >= 5 && strncasecmp(line, "HTTP/", 5) == 0) {
        *text = space + 1;
        return atoi(*text);
    }
    for (zend_llist_element *e = headers->headers.head; e; e = e->next) {
        const sapi_header_struct *h = (const sapi_header_struct *)e->data;
        if (IS_NAMED(h, "Status:")) {
            *text = h->header + sizeof("Status:") - 1;
            return atoi(*text);
        }
    }
    return code;
}

/* Returns the last one of several: nginx keeps that, and clients disagree about which one
 * counts. */
static const sapi_header_struct *last_content_type(const sapi_headers_struct *headers) {
    for (zend_llist_element *e = headers->headers.tail; e; e = e->prev) {
        const sapi_header_struct *h = (const sapi_header_struct *)e->data;
        if (IS_NAMED(h, "Content-Type:")) {
            return h;
        }
    }
    return NULL;
}

/* Returns true if the display of a fatal error sends the headers. An error of the memory limit
 * does that, too, because PHP gives up the output buffers first. */
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

/* Passes on the reason phrase, if the script has set one. Others follow from the code. */
static void add_reason(lines *out, const char *text) {
    text += strspn(text, " ");
    text += strspn(text, "0123456789");
    const size_t len = strcspn(text, "\r\n");
    if (len > 1 && *text == ' ' && len <= REASON_BYTES_MAX) {
        char line[sizeof("Status: 000") + REASON_BYTES_MAX];
        const int written = snprintf(line, sizeof line, "Status: %.*s", (int)len, text);
        add_line(out, line, (size_t)written);
    }
}

static int send_headers(sapi_headers_struct *headers) {
    if (!samovar_current || samovar_responded || SG(request_info).no_headers) {
        return SAPI_HEADER_SENT_SUCCESSFULLY;
    }
    const char *text = NULL;
    int status = response_status(headers, &text);
    if (samovar_serving && status == 200 && died()) {
        status = 500;
        text = NULL;
    }
    if (status < 100 || status > 999) {
        status = 200;
        text = NULL;
    }
    samovar_request_accounting_status(status);
    lines out;
    begin_lines(&out);
    if (text) {
        add_reason(&out, text);
    }
    add_headers(&out, headers, status == 304 ? NULL : last_content_type(headers));
    int failed = samovar_put_head(status, out.at, out.len);
    if (failed) {
        samovar_note("PHP Samovar: the response headers are too long (%zu bytes, at most 32768); "
                     "responding with 500",
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

bool samovar_finish_response(void) {
    if (!samovar_current || samovar_responded) {
        return false;
    }
    php_output_end_all();
    php_header();
    samovar_end_response();
    samovar_responded = true;
    return true;
}

/* ---- read ---------------------------------------------------------------------------------- */

static size_t read_post(char *to, size_t count) {
    if (!samovar_current) {
        return 0;
    }
    size_t have = 0;
    while (have < count) {
        size_t n = samovar_body_read(to + have, count - have);
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

/* Offset of the request's target in samovar_head. `samovar spy` reads it from outside
 * (crates/spy/src/reader.rs): `request_uri` is the script's name. */
extern const uint32_t samovar_request_target_at;
const uint32_t samovar_request_target_at = offsetof(samovar_head, target);

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

void samovar_forget_request_info(void) {
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
        const char *script = samovar_settings->app_script, *name = strrchr(script, '/');
        samovar_user_ini_activate(script, name ? (size_t)(name - script) : 0, script);
    }
    return SUCCESS;
}

static void ini_default(HashTable *ini, const char *name, const char *value) {
    zval zv;
    ZVAL_NEW_STR(&zv, zend_string_init(value, strlen(value), 1));
    zend_hash_str_update(ini, name, strlen(name), &zv);
}

/* Settings that php-fpm makes before php.ini is read. */
static void ini_defaults(HashTable *ini) {
    ini_default(ini, "display_errors", "1");
}

static sapi_module_struct module = {"samovar",
                                    "Samovar",
                                    NULL, /* startup: startup.c */
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

/* ---- scripts that cannot be opened --------------------------------------------------------- */

static zend_result (*open_as_php)(zend_file_handle *);

/* Sends the response that php-fpm sends if it cannot open the script (fpm_main.c). PHP would
 * show a fatal error "in Unknown on line 0", with the script's path. */
static void refuse_script(const char *script, int error) {
    const bool is_forbidden = error == EACCES;
    samovar_note("PHP Samovar: cannot open the script `%s`: %s%s", script, strerror(error),
                 is_forbidden ? "\nhint: let the server's user read it" : "");
    SG(sapi_headers).http_response_code = is_forbidden ? 403 : 404;
    PUTS(is_forbidden ? "Access denied.\n" : "File not found.\n");
}

/* Called only if the script is not in opcache. */
static zend_result open_script(zend_file_handle *file) {
    if (file->primary_script && samovar_current &&
        faccessat(AT_FDCWD, ZSTR_VAL(file->filename), R_OK, AT_EACCESS) != 0) {
        refuse_script(ZSTR_VAL(file->filename), errno);
        zend_bailout();
    }
    return open_as_php(file);
}

/* ---- start --------------------------------------------------------------------------------- */

sapi_module_struct *samovar_sapi_prepare(const samovar_options *options) {
    samovar_settings = options;
    module.name = (char *)options->sapi_name;
    module.ini_defaults = ini_defaults;
    module.php_ini_ignore_cwd = 1;
    return &module;
}

/* PHP_SAPI is registered with the module's name before the extensions start, so it is the real
 * one. */
void samovar_sapi_minit(void) {
    sapi_module.name = (char *)OPCACHE_KNOWS;
    /* Done here, too: opcache takes the function that it finds as the way to open a script. */
    open_as_php = zend_stream_open_function;
    zend_stream_open_function = open_script;
}

void samovar_sapi_started(void) {
    sapi_module.name = (char *)samovar_settings->sapi_name;
}
