/* activate: from a request's head to superglobals, input, output and time limit, for
 * applications that are already booted (resident.c, checkpoint.c). Like php_request_startup
 * (php-src main/main.c), without the steps that would end the application. */
#include "model/activate.h"
#include "compat.h"
#include "functions/timer_object.h"
#include "functions/wrapped.h"
#include "model/debugger.h"
#include "model/overrun.h"
#include "model/session.h"
#include "rollback/time_limit.h"
#include "sapi/boot_globals.h"
#include "sapi/opcache.h"
#include "sapi/sapi.h"

static zend_module_entry *filter, *zlib;

/* ---- modules ------------------------------------------------------------------------------- */

/* Three extensions have only state that belongs to the request, and none that an application
 * sets at boot:
 * - session reads, writes and closes the session;
 * - filter keeps its own copies of the input;
 * - zlib keeps the coding that the client accepts.
 *
 * The functions of other extensions (mbstring, libxml …) are not run, because they would undo
 * settings that the application made at boot. */
static zend_module_entry *module_named(const char *name) {
    return zend_hash_str_find_ptr(&module_registry, name, strlen(name));
}

static void start_module(const zend_module_entry *module) {
    if (module && module->request_startup_func) {
        module->request_startup_func(module->type, module->module_number);
    }
}

static void stop_module(const zend_module_entry *module) {
    if (module && module->request_shutdown_func) {
        module->request_shutdown_func(module->type, module->module_number);
    }
}

static void activate_modules(void) {
    start_module(zlib);
    samovar_session_begin();
}

void samovar_deactivate_modules(void) {
    samovar_session_end();
    stop_module(filter);
    samovar_filter_input_filled = false;
    stop_module(zlib);
}

/* ---- superglobals and output --------------------------------------------------------------- */

static zend_auto_global *superglobals[7];
static const char *const superglobal_names[] = {"_GET",    "_POST", "_COOKIE", "_FILES",
                                                "_SERVER", "_ENV",  "_REQUEST"};

static void find_superglobals(void) {
    for (int i = 0; i < 7; i++) {
        const char *name = superglobal_names[i];
        superglobals[i] = zend_hash_str_find_ptr(CG(auto_globals), name, strlen(name));
    }
}

/* Superglobals that are built on first use stay unbuilt until compiled code mentions them
 * (armed). A flag is only written if it changes, because a page that is not written need not be
 * copied back. */
static void fill_superglobals(void) {
    /* The engine publishes the former request's $_FILES again unless it is gone. */
    zval *files = &PG(http_globals)[TRACK_VARS_FILES];
    zval_ptr_dtor_nogc(files);
    ZVAL_UNDEF(files);
    for (int i = 0; i < 7; i++) {
        zend_auto_global *a = superglobals[i];
        if (a && a->auto_global_callback && (!a->jit || !a->armed)) {
            const bool armed = a->auto_global_callback(a->name);
            if (a->armed != armed) {
                a->armed = armed;
            }
        }
    }
}

static void start_output(void) {
    if (PG(output_handler) && PG(output_handler)[0]) {
        zval name;
        ZVAL_STRING(&name, PG(output_handler));
        php_output_start_user(&name, 0, PHP_OUTPUT_HANDLER_STDFLAGS);
        zval_ptr_dtor(&name);
    } else if (PG(output_buffering)) {
        size_t chunk = PG(output_buffering) > 1 ? (size_t)PG(output_buffering) : 0;
        php_output_start_user(NULL, chunk, PHP_OUTPUT_HANDLER_STDFLAGS);
    } else if (PG(implicit_flush)) {
        php_output_set_implicit_flush(1);
    }
}

/* ---- activate ------------------------------------------------------------------------------ */

void samovar_activate_startup(void) {
    samovar_session_startup();
    filter = module_named("filter");
    zlib = module_named("zlib");
    samovar_debugger_startup();
    find_superglobals();
    samovar_opcache_find();
}

static void begin(void) {
    PG(in_error_log) = 0;
    /* A shutdown function of the former request may have left it set: generators would skip
     * their `finally`. */
    CG(unclean_shutdown) = 0;
    /* The setting display_startup_errors decides whether warnings are shown. */
    PG(during_request_startup) = 1;
    PG(header_is_being_sent) = 0;
    PG(connection_status) = PHP_CONNECTION_NORMAL;
    /* Until they are activated: an upload's progress is written to a session before the request
     * has one. */
    PG(modules_activated) = 0;
    samovar_measures_begin();
    samovar_fill_request_info(samovar_current);
    samovar_overrun_begin();
}

static void begun(void) {
    samovar_opcache_tick();
    fill_superglobals();
    samovar_boot_globals_add();
    activate_modules();
    PG(modules_activated) = 1;
    samovar_debugger_begin();
    PG(during_request_startup) = 0;
    SG(sapi_started) = 1;
}

void samovar_activate(void) {
    begin();
    php_output_activate();
    sapi_activate();
    samovar_time_limit_arm();
    if (PG(expose_php)) {
        sapi_add_header(SAPI_PHP_VERSION_HEADER, sizeof(SAPI_PHP_VERSION_HEADER) - 1, 1);
    }
    start_output();
    begun();
}

/* Headers, output buffers and output from above the checkpoint belong to every request, as if
 * the whole script ran. */
void samovar_activate_below(void) {
    const sapi_headers_struct headers = SG(sapi_headers);
    const zval header_callback = SG(callback_func);
    begin();
    sapi_activate();
    SG(sapi_headers) = headers;
    SG(callback_func) = header_callback;
    samovar_time_limit_arm();
    begun();
    samovar_replay_early_output();
}
