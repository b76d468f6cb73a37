/* take, run, reset: the resident model, and Samovar\serve(), which is a loop over it.
 *
 * The application is booted once; its handler is called for each request. Between two requests
 * reset.c restores the state of the request. Every `rollbackEvery` requests, and after a fatal
 * error, the whole process returns to its state when serving began. In frankenphp.c the loop is
 * the application's own. */
#include "model/resident.h"
#include "heap_walk/report.h"
#include "heap_walk/watch.h"
#include "compat.h"
#include "functions/request_object.h"
#include "functions/response_object.h"
#include "functions/timer_object.h"
#include "insight/request_accounting.h"
#include "loads/loads.h"
#include "memory/persistent.h"
#include "model/activate.h"
#include "model/checkpoint.h"
#include "model/collect.h"
#include "model/debugger.h"
#include "model/end_below.h"
#include "model/reset.h"
#include "model/script.h"
#include "outside/request_reads.h"
#include "rollback/rollback.h"
#include "rollback/taint.h"
#include "rollback/time_limit.h"
#include "sapi/sapi.h"
#include "tasks/task.h"
#include <zend_exceptions.h>
#include <unistd.h>
#include <ext/standard/basic_functions.h>
#include "functions/arginfo/prototypes.h"

/* Closes handles on php://input, which would outlive the body that they read. */
static int close_input(zval *resource) {
    php_stream *stream =
        zend_fetch_resource2(Z_RES_P(resource), NULL, php_file_le_stream(), php_file_le_pstream());
    if (stream && stream->ops->label && strcmp(stream->ops->label, "Input") == 0) {
        zend_list_close(Z_RES_P(resource));
    }
    return ZEND_HASH_APPLY_KEEP;
}

static void drop_body(php_stream *body) {
    if (!body) {
        return;
    }
    zend_hash_apply(&EG(regular_list), close_input);
    php_stream_free(body, PHP_STREAM_FREE_CLOSE);
}

enum { GROWTH_MIN_BYTES = 4096 };
static size_t settled_bytes; /* 0: before the end of the first request */

/* Returns the memory that requests have left since the last call that did not return 0. Smaller
 * changes are kept for a later request: they are mostly the difference between this request's
 * superglobals and those of the one before. */
static int64_t growth(void) {
    const size_t now = zend_memory_usage(0);
    const int64_t grown = (int64_t)now - (int64_t)settled_bytes;
    const bool is_first = settled_bytes == 0;
    if (!is_first && grown < GROWTH_MIN_BYTES && grown > -GROWTH_MIN_BYTES) {
        return 0;
    }
    settled_bytes = now;
    return is_first ? 0 : grown;
}

/* Like php_request_shutdown. Each step may bail out, and the next must run nevertheless. */
static void end(samovar_handler *handler, zend_execute_data *frames) {
    /* Without a frame of ours above them, an exception that leaves a shutdown function is
     * reported, not kept. */
    EG(current_execute_data) = NULL;
    samovar_forget_out_of_memory();
    zend_try {
        samovar_tasks_end();
    }
    zend_end_try();
    zend_try {
        php_call_shutdown_functions();
    }
    zend_end_try();
    if (samovar_reports()) {
        samovar_report_request(&(heap_walk_waiting){&handler->info.function_name, frames});
    }
    if (BG(user_shutdown_function_names)) {
        php_free_shutdown_functions();
        BG(user_shutdown_function_names) = NULL;
    }
    zend_try {
        samovar_tasks_end(); /* Tasks of shutdown functions. */
    }
    zend_end_try();
    zend_try {
        samovar_debugger_end();
    }
    zend_end_try();
    zend_try {
        php_output_end_all();
    }
    zend_end_try();
    zend_try {
        samovar_measures_end();
    }
    zend_end_try();
    zend_try {
        samovar_deactivate_modules();
    }
    zend_end_try();
    zend_try {
        php_output_deactivate();
    }
    zend_end_try();
    if (!Z_ISUNDEF(SG(callback_func))) {
        zval_ptr_dtor(&SG(callback_func));
        ZVAL_UNDEF(&SG(callback_func));
    }
    php_stream *body = SG(request_info).request_body;
    zend_try {
        sapi_deactivate();
    }
    zend_end_try();
    SG(request_info).cookie_data = NULL;
    zend_try {
        drop_body(body);
    }
    zend_end_try();
    samovar_request_expire();
    if (samovar_persistent) {
        samovar_loads_close(samovar_loads_state(), LOADS_TELL_ON);
    }
    size_t peak = zend_memory_peak_usage(0);
    zend_memory_reset_peak_usage();
    SG(server_context) = NULL;
    samovar_current = NULL;
    samovar_finish(peak, growth());
    if (samovar_persistent) {
        samovar_loads_tell(samovar_loads_state());
    }
    samovar_reset();
    /* Between requests no client receives headers, but the output layer must exist. */
    php_output_activate();
    SG(request_info).no_headers = 1;
}

/* As in php-fpm, a status that the script has set stays. */
static void response_500(void) {
    if (!SG(headers_sent) && SG(sapi_headers).http_response_code == 200) {
        SG(sapi_headers).http_response_code = 500;
    }
}

/* Like zend_user_exception_handler. With a frame above it, an exception that the handler throws
 * would be dropped there. So it stays in EG(exception), to be reported. */
static void call_exception_handler(void) {
    zend_object *thrown = EG(exception);
    zval handler, argument, returned;
    EG(exception) = NULL;
    ZVAL_OBJ(&argument, thrown);
    ZVAL_COPY_VALUE(&handler, &EG(user_exception_handler));
    /* When the handler restores the former one, it finds itself here. */
    zend_stack_push(&EG(user_exception_handlers), &handler);
    ZVAL_UNDEF(&EG(user_exception_handler));
    ZVAL_UNDEF(&returned);
    call_user_function(NULL, NULL, &handler, &returned, 1, &argument);
    zval_ptr_dtor(&returned);
    OBJ_RELEASE(thrown);
    if (EG(exception) && zend_is_unwind_exit(EG(exception))) {
        zend_clear_exception();
    }
    const zval *former = zend_stack_top(&EG(user_exception_handlers));
    if (Z_TYPE(EG(user_exception_handler)) == IS_UNDEF && former) {
        ZVAL_COPY_VALUE(&EG(user_exception_handler), former);
        zend_stack_del_top(&EG(user_exception_handlers));
    }
}

static void report_exception(void) {
    if (zend_is_graceful_exit(EG(exception))) {
        return; /* The fiber of the request is destroyed: this exit is not ours to catch. */
    }
    if (zend_is_unwind_exit(EG(exception))) {
        zend_clear_exception(); /* exit(): a normal end. */
        return;
    }
    if (Z_TYPE(EG(user_exception_handler)) != IS_UNDEF) {
        call_exception_handler();
    }
    if (EG(exception)) {
        response_500();
        zend_exception_error(EG(exception), E_ERROR);
    }
}

void samovar_call_handler(samovar_handler *handler) {
    zval returned, request;
    ZVAL_UNDEF(&returned);
    ZVAL_UNDEF(&request);
    zend_fcall_info call = handler->info;
    call.retval = &returned;
    call.param_count = 0;
    if (handler->wants_request) {
        ZVAL_OBJ(&request, samovar_request_new());
        call.params = &request;
        call.param_count = 1;
    }
    zend_call_function(&call, &handler->cache);
    if (!EG(exception) && handler->may_return) {
        samovar_deliver(&returned);
    }
    zval_ptr_dtor(&returned);
    zval_ptr_dtor(&request);
    if (samovar_is_out_of_memory()) {
        if (EG(exception)) {
            zend_clear_exception();
        }
        zend_bailout();
    }
    if (EG(exception)) {
        report_exception();
    }
}

/* Returns true if the handler returned, false if a fatal error has left the engine in a state
 * that only a new boot repairs. */
static bool handle(samovar_handler *handler) {
    volatile bool intact = true;
    zend_try {
        samovar_activate();
        samovar_call_handler(handler);
    }
    zend_catch {
        PG(during_request_startup) = 0;
        if (!(PG(connection_status) & PHP_CONNECTION_ABORTED)) {
            response_500();
        }
        intact = !CG(unclean_shutdown);
    }
    zend_end_try();
    return intact;
}

/* ---- one request --------------------------------------------------------------------------- */

static zend_long rollback_every;
static size_t heap_at_image;
SAMOVAR_OF_REQUEST static zend_long since_image;
/* True while code of the request, or of its end, runs. */
SAMOVAR_OF_REQUEST static bool dispatching;

bool samovar_dispatching(void) {
    return dispatching;
}

/* Returns true if the process must return to the image. For the application, the end of the
 * request is then the end of the process, too. */
static bool is_due(bool intact) {
    return samovar_persistent &&
           (++since_image >= rollback_every || !intact ||
            zend_memory_usage(0) > heap_at_image + samovar_settings->growth_bytes_max);
}

/* Returns false if a fatal error has left the engine in a state that only a new boot repairs. */
static bool dispatch(samovar_handler *handler) {
    zend_execute_data *caller = EG(current_execute_data);
    samovar_responded = false;
    dispatching = true;
    if (samovar_persistent) {
        /* All requests between two returns, or none: code that the first of them loads is there
         * for the others. */
        samovar_loads_open(samovar_loads_state(), samovar_rollback_state()->count);
    }
    const bool intact = handle(handler);
    if (!dispatching) {
        return true; /* The script has ended meanwhile, and the request with it. */
    }
    if (is_due(intact)) {
        samovar_reset_undo_shutdown_functions();
        samovar_end_below();
    }
    EG(current_execute_data) = caller;
    end(handler, caller);
    EG(current_execute_data) = caller;
    if (!samovar_persistent && !CG(unclean_shutdown)) {
        samovar_watch_request(&(heap_walk_waiting){&handler->info.function_name, caller});
    }
    if (samovar_persistent && CG(unclean_shutdown)) {
        samovar_roll_back();
    }
    dispatching = false;
    /* Set by a shutdown function or an output handler: the engine catches its error and
     * continues, unclean. */
    return !CG(unclean_shutdown);
}

/* Drops output that was made while there was no request. It has no reader. */
static void drop_early_response(void) {
    php_output_end_all();
    samovar_log_early_output();
    zend_llist_clean(&SG(sapi_headers).headers);
}

static void warm_up(samovar_handler *handler) {
    samovar_warming = true;
    while ((samovar_current = samovar_next_warmup())) {
        const samovar_head *head = samovar_current;
        const uint32_t load =
            samovar_load_begin(LOAD_REQUEST, samovar_text(head, head->target), head->target.len);
        const bool is_intact = dispatch(handler);
        samovar_load_end(load);
        if (!is_intact) {
            samovar_note("PHP Samovar: a warm-up request ended in a fatal error");
            zend_bailout();
        }
    }
    samovar_warming = false;
}

/* In the image process this returns in each worker that is forked from it. With rollbacks it
 * also returns after each of them. */
static void take_image(void) {
    if (rollback_every > 0) {
        samovar_take_image();
        heap_at_image = zend_memory_usage(0);
    } else if (samovar_place == SAMOVAR_REHEARSES) {
        samovar_loads_booted();
        _exit(0);
    } else if (samovar_place == SAMOVAR_BOOTS_IMAGE) {
        samovar_share_boot();
    } else {
        samovar_loads_booted();
    }
}

void samovar_serving_begin(samovar_handler *handler, zend_long every) {
    /* Without rollbacks where heap walks are made, so that growth is visible. */
    rollback_every = samovar_reports() ? 0 : every;
    samovar_request_reads_end();
    drop_early_response();
    samovar_tasks_end(); /* Tasks of a script with its own loop. */
    samovar_activate_startup();
    samovar_reset_save();
    samovar_serving = true;
    samovar_time_limit_forget();
    warm_up(handler);
    take_image();
    if (!samovar_persistent) {
        samovar_collect_begin(); /* With rollbacks, it began with the image. */
    }
    samovar_taints_restart();
    samovar_resident(samovar_persistent != NULL);
    if (!samovar_persistent) {
        samovar_watch_begin();
    }
    if (samovar_reports()) {
        samovar_report_begin(
            &(heap_walk_waiting){&handler->info.function_name, EG(current_execute_data)});
    }
}

void samovar_serving_end(int outcome) {
    samovar_serving = false;
    samovar_collect_end();
    samovar_watch_end();
    samovar_reset_drop();
    samovar_outcome = outcome;
}

/* A request may still be open, in a fiber that has suspended itself. It ends like the script of
 * a request, and the fiber is destroyed meanwhile. */
void samovar_script_ended(void) {
    if (dispatching) {
        dispatching = false;
        samovar_reset_keep_shutdown_functions();
    }
    samovar_serving_end(SAMOVAR_RUN_ENDED);
}

static void restart(void) {
    samovar_serving_end(SAMOVAR_RUN_RESTART);
    zend_bailout();
}

/* Takes a request. An idle worker that has grown searches for the cause of its growth meanwhile. */
static void take(samovar_handler *handler) {
    while (!(samovar_current = samovar_take()) && samovar_idle_asked()) {
        samovar_watch_idle(
            &(heap_walk_waiting){&handler->info.function_name, EG(current_execute_data)});
    }
}

bool samovar_serve_next(samovar_handler *handler) {
    if (!samovar_collect_between()) {
        restart();
    }
    drop_early_response();
    if (samovar_tainted() && !samovar_reports()) {
        samovar_serving_end(SAMOVAR_RUN_ENDED);
        return false;
    }
    samovar_taints_begin();
    take(handler);
    samovar_collect_waited();
    if (!samovar_current) {
        samovar_serving_end(SAMOVAR_RUN_STOP);
        return false;
    }
    if (!dispatch(handler)) {
        restart();
    }
    return true;
}

/* ---- serve --------------------------------------------------------------------------------- */

static void serve_all(samovar_handler *handler, zend_long every) {
    samovar_serving_begin(handler, every);
    while (samovar_serve_next(handler)) {
    }
}

ZEND_FUNCTION(Samovar_serve) {
    samovar_handler handler = {.may_return = true};
    zend_long every = 0;
    ZEND_PARSE_PARAMETERS_START(1, 2)
    Z_PARAM_FUNC(handler.info, handler.cache)
    Z_PARAM_OPTIONAL
    Z_PARAM_LONG(every)
    ZEND_PARSE_PARAMETERS_END();
    if (samovar_place == SAMOVAR_RUNS_CONSOLE) {
        zend_throw_error(NULL, "Samovar\\serve() serves requests: there are none on the console");
        RETURN_THROWS();
    }
    if (samovar_tasks_in_flight()) {
        zend_throw_error(NULL, "Samovar\\serve() with tasks in flight: await them first");
        RETURN_THROWS();
    }
    if (samovar_serving || samovar_below_checkpoint) {
        zend_throw_error(NULL, "Samovar\\serve() is already serving: it cannot be nested");
        RETURN_THROWS();
    }
    if (every < 0) {
        zend_argument_value_error(2, "must be greater than or equal to 0");
        RETURN_THROWS();
    }
    /* The handler must survive the frame that passed it. */
    Z_TRY_ADDREF(handler.info.function_name);
    /* NULL: a method that __call() handles. */
    const zend_function *function = handler.cache.function_handler;
    handler.wants_request = function && function->common.num_args > 0;
    if (samovar_current) {
        /* A worker that was not booted ahead has reached serve() in a request. State that the
         * script has made above belongs to this visitor only. The application's next worker
         * boots ahead. */
        samovar_request_accounting_booted();
        samovar_meets_boot();
        /* For scripts other than the front controller: the handler serves this one request. */
        samovar_call_handler(&handler);
    } else {
        serve_all(&handler, every);
    }
    zval_ptr_dtor(&handler.info.function_name);
}
