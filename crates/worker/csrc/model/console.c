/* Console workers: one script, run as on the PHP command line (php-src sapi/cli/php_cli.c), in a
 * child of the template. So it finds code in opcache that requests have compiled, and the other
 * way round. Only the name of the SAPI differs, so that name must not be compiled into any code. */
#include "model/console.h"
#include "sapi/name.h"
#include "sapi/sapi.h"
#include "sapi/variables.h"
#include <zend_ini.h>
#include <zend_signal.h>
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static const char CLI_NAME[] = "cli";
static const char NAMESPACE[] = "samovar\\";
static char **arguments;
/* The script that runs. */
static const char *script;

/* ---- the SAPI module ----------------------------------------------------------------------- */

static size_t put(int fd, const char *bytes, size_t len) {
    size_t done = 0;
    while (done < len) {
        const ssize_t n = write(fd, bytes + done, len - done);
        if (n < 0 && errno != EINTR) {
            break;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return done;
}

static size_t ub_write(const char *bytes, size_t len) {
    return put(STDOUT_FILENO, bytes, len);
}

static void flush(void *server_context) {
    (void)server_context;
}

static int send_headers(sapi_headers_struct *headers) {
    (void)headers;
    return SAPI_HEADER_SENT_SUCCESSFULLY;
}

static void log_message(const char *message, int syslog_type) {
    (void)syslog_type;
    put(STDERR_FILENO, message, strlen(message));
    put(STDERR_FILENO, "\n", 1);
}

static void set(const char *name, const char *value) {
    zend_string *key = zend_string_init(name, strlen(name), 0);
    zend_alter_ini_entry_chars_ex(key, value, strlen(value), PHP_INI_SYSTEM, PHP_INI_STAGE_ACTIVATE,
                                  1);
    zend_string_release(key);
}

/* Settings that the command line has independent of php.ini. */
static int activate_plain(void) {
    set("register_argc_argv", "1");
    set("html_errors", "0");
    set("implicit_flush", "1");
    set("output_buffering", "0");
    set("max_execution_time", "0");
    set("max_input_time", "-1");
    return SUCCESS;
}

/* The same, and the default of Debian for memory_limit: the supervisor has its own. Errors go to
 * the log, once. */
static int activate(void) {
    activate_plain();
    set("memory_limit", "-1");
    set("display_errors", "0");
    set("log_errors", "1");
    return SUCCESS;
}

/* Identity of the process (console.rs). It is not among the variables that the template has
 * found. */
static const char *const identity[] = {"SAMOVAR_CONSOLE_NAME", "SAMOVAR_CONSOLE_NUMBER"};

static void register_variables(zval *array) {
    samovar_register_variables(array); /* The environment; there is no request. */
    for (size_t i = 0; i < sizeof identity / sizeof identity[0]; i++) {
        const char *value = getenv(identity[i]);
        if (value) {
            php_register_variable(identity[i], value, array);
        }
    }
    php_register_variable("PHP_SELF", arguments[0], array);
    php_register_variable("SCRIPT_NAME", arguments[0], array);
    php_register_variable("SCRIPT_FILENAME", arguments[0], array);
    php_register_variable("PATH_TRANSLATED", arguments[0], array);
    php_register_variable("DOCUMENT_ROOT", "", array);
}

static void become_cli(void) {
    sapi_module.name = (char *)CLI_NAME;
    sapi_module.pretty_name = "Command Line Interface";
    sapi_module.activate = activate;
    sapi_module.ub_write = ub_write;
    sapi_module.flush = flush;
    sapi_module.getenv = NULL;
    sapi_module.send_headers = send_headers;
    sapi_module.read_post = NULL;
    sapi_module.read_cookies = NULL;
    sapi_module.register_server_variables = register_variables;
    sapi_module.log_message = log_message;
    sapi_module.phpinfo_as_text = 1;
    samovar_sapi_rename(CLI_NAME);
}

/* The front decides when other workers leave. Here SIGTERM is an order, and pcntl_signal() may
 * handle it. */
static void give_signals_back(void) {
    const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        signal(signals[i], SIG_DFL);
    }
#ifdef ZEND_SIGNALS
    zend_signal_startup(); /* Takes the handlers that it finds as the default. */
#endif
}

/* Only a rollback needs the heap in one piece. */
static void give_malloc_back(void) {
    mallopt(M_MMAP_MAX, 65536);
    mallopt(M_TRIM_THRESHOLD, 128 * 1024);
}

/* Libraries look for some of them. */
void samovar_hide_functions_of_servers(void) {
    const zend_module_entry *own = zend_hash_str_find_ptr(&module_registry, ZEND_STRL("samovar"));
    for (const zend_function_entry *f = own ? own->functions : NULL; f && f->fname; f++) {
        if (zend_binary_strncasecmp(f->fname, strlen(f->fname), NAMESPACE, sizeof NAMESPACE - 1,
                                    sizeof NAMESPACE - 1) != 0) {
            zend_hash_str_del(CG(function_table), f->fname, strlen(f->fname));
        }
    }
}

/* ---- the run ------------------------------------------------------------------------------- */

static void define_stream(const char *name, const char *url, const char *mode) {
    php_stream_context *context = php_stream_context_alloc();
    php_stream *stream = php_stream_open_wrapper_ex(url, mode, 0, NULL, context);
    if (!stream) {
        return;
    }
    stream->flags |= PHP_STREAM_FLAG_NO_RSCR_DTOR_CLOSE;
    zend_constant constant;
    php_stream_to_zval(stream, &constant.value);
    Z_ADDREF(constant.value);
    ZEND_CONSTANT_SET_FLAGS(&constant, 0, 0);
    constant.name = zend_string_init_interned(name, strlen(name), 0);
    zend_register_constant(&constant);
}

static void define_streams(void) {
    define_stream("STDIN", "php://stdin", "rb");
    define_stream("STDOUT", "php://stdout", "wb");
    define_stream("STDERR", "php://stderr", "wb");
}

static void execute(void) {
    zend_file_handle file;
    zend_first_try {
        define_streams();
        zend_stream_init_filename(&file, script);
        file.primary_script = true;
        CG(skip_shebang) = 1;
        php_execute_script(&file);
        zend_destroy_file_handle(&file);
    }
    zend_end_try();
}

void samovar_console_begin(int count, char **words, bool forces_limits) {
    arguments = words;
    samovar_place = SAMOVAR_RUNS_CONSOLE;
    samovar_current = NULL;
    give_signals_back();
    give_malloc_back();
    become_cli();
    if (!forces_limits) {
        sapi_module.activate = activate_plain;
    }
    SG(server_context) = NULL;
    SG(request_info).argc = count;
    SG(request_info).argv = words;
    SG(request_info).path_translated = words[0];
    SG(request_info).no_headers = 1;
    SG(options) |= SAPI_OPTION_NO_CHDIR;
}

int samovar_console_run(int count, char **words, const char *file, void (*begin)(void)) {
    script = file;
    samovar_console_begin(count, words, !begin);
    if (php_request_startup() == FAILURE) {
        return 1;
    }
    SG(headers_sent) = 1;
    if (begin) {
        begin();
    }
    execute();
    const int status = EG(exit_status);
    php_request_shutdown(NULL);
    if (begin) {
        /* The end of PHP would free memory, and so copy the pages that this process shares with
         * the others. */
        fflush(NULL);
        _exit(status);
    }
    samovar_php_shutdown();
    return status;
}

int samovar_php_console(int count, char **words) {
    return samovar_console_run(count, words, words[0], NULL);
}
