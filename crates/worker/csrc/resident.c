/* take, activate, run, reset: Samovar\serve(), the resident model.
 *
 * The application is booted once; its handler is called for each request. What belongs to the
 * *request* is put back between two requests: superglobals, headers, output buffers, uploads,
 * shutdown functions, ini changes, the session, error and exception handlers, locale, umask,
 * environment, working directory and the time limit go back to what they were when serve() was
 * called. What belongs to the *application* lives on: globals, statics, classes, open connections.
 */
#include "samovar.h"
#include <php_ini.h>
#include <zend_exceptions.h>
#include <zend_smart_str.h>
#include <ext/session/php_session.h>
#include <ext/standard/basic_functions.h>
#include <ext/standard/php_filestat.h>
#include <locale.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

bool samovar_serving;
int samovar_outcome;

static zend_fcall_info handler_info;
static zend_fcall_info_cache handler_cache;
static bool wants_request;

/* A PHP without sessions has no such symbol. */
#pragma weak ps_globals
static zend_module_entry *session, *filter, *zlib;

/* ---- the state that each request starts from ----------------------------------------------- */

typedef struct {
    zend_ini_entry *entry;
    zend_string *value;
} ini_setting;

/* One of the engine's pairs "current handler, stack of former ones". */
typedef struct {
    zval current;
    zval *former;
    int depth;
} handlers;

static struct {
    ini_setting *ini;
    uint32_t ini_count;
    handlers error, exception;
    int error_handler_reporting;
    HashTable *shutdown_functions;
    zval session_handlers[PS_NUM_APIS];
    zend_string *session_handler_class;
    HashTable environment;
    char *locale;
    mode_t umask;
    int former_umask; /* The engine's note of what umask() at boot replaced. */
    char cwd[MAXPATHLEN];
} base;

static void save_ini(void) {
    base.ini_count = 0;
    HashTable *modified = EG(modified_ini_directives);
    base.ini = emalloc(sizeof(ini_setting) * (modified ? zend_hash_num_elements(modified) + 1 : 1));
    if (!modified) {
        return;
    }
    zend_ini_entry *entry;
    ZEND_HASH_FOREACH_PTR(modified, entry) {
        zend_string *value = entry->value ? zend_string_copy(entry->value) : NULL;
        base.ini[base.ini_count++] = (ini_setting){entry, value};
    }
    ZEND_HASH_FOREACH_END();
}

static const ini_setting *saved_ini(const zend_ini_entry *entry) {
    for (uint32_t i = 0; i < base.ini_count; i++) {
        if (base.ini[i].entry == entry) {
            return &base.ini[i];
        }
    }
    return NULL;
}

static bool is_value(const zend_ini_entry *entry, const zend_string *value) {
    return entry->value == value ||
           (entry->value && value && zend_string_equals(entry->value, (zend_string *)value));
}

/* The time limit without a system call per request (zend_set_timeout and zend_unset_timeout make
 * six). The signal handler stands since the boot, and the timer counts CPU time, so that it need
 * not be stopped while the worker waits. It is set a 64th longer than the limit, and set again only
 * when former requests have used up that 64th: a request may run for its limit, and for at most a
 * 64th longer. */
static struct {
    bool known; /* Nobody else has touched the timer since. */
    zend_long seconds;
    uint64_t at_ns; /* samovar_cpu_ns() when it was set. */
} timer;

/* Stage DEACTIVATE: the session's settings refuse any other once headers were sent. */
static void restore_ini(void) {
    HashTable *modified = EG(modified_ini_directives);
    if (modified && zend_hash_num_elements(modified) > 0) {
        uint32_t count = zend_hash_num_elements(modified), n = 0;
        zend_ini_entry **changed = emalloc(sizeof *changed * count), *entry;
        ZEND_HASH_FOREACH_PTR(modified, entry) {
            if (!saved_ini(entry)) {
                changed[n++] = entry;
            }
        }
        ZEND_HASH_FOREACH_END();
        if (n > 0) {
            timer.known = false; /* set_time_limit() is an ini change too. */
        }
        for (uint32_t i = 0; i < n; i++) {
            zend_restore_ini_entry(changed[i]->name, PHP_INI_STAGE_DEACTIVATE);
        }
        efree(changed);
    }
    for (uint32_t i = 0; i < base.ini_count; i++) {
        const ini_setting *saved = &base.ini[i];
        if (saved->value && !is_value(saved->entry, saved->value)) {
            timer.known = false;
            zend_alter_ini_entry_ex(saved->entry->name, saved->value, PHP_INI_SYSTEM,
                                    PHP_INI_STAGE_DEACTIVATE, 1);
        }
    }
}

static void save_handlers(handlers *to, const zval *current, const zend_stack *stack) {
    ZVAL_COPY(&to->current, (zval *)current);
    to->depth = stack->top;
    to->former = emalloc(sizeof(zval) * (size_t)(stack->top + 1));
    const zval *from = stack->elements;
    for (int i = 0; i < stack->top; i++) {
        ZVAL_COPY(&to->former[i], (zval *)&from[i]);
    }
}

static bool is_same(const zval *a, const zval *b) {
    return Z_TYPE_P(a) == Z_TYPE_P(b) && (!Z_REFCOUNTED_P(a) || Z_COUNTED_P(a) == Z_COUNTED_P(b));
}

static void restore_handlers(const handlers *saved, zval *current, zend_stack *stack) {
    if (is_same(current, &saved->current) && stack->top == saved->depth) {
        return;
    }
    zval old;
    ZVAL_COPY_VALUE(&old, current);
    ZVAL_COPY(current, (zval *)&saved->current);
    zval_ptr_dtor(&old);
    while (!zend_stack_is_empty(stack)) {
        zval_ptr_dtor(zend_stack_top(stack));
        zend_stack_del_top(stack);
    }
    for (int i = 0; i < saved->depth; i++) {
        zval copy;
        ZVAL_COPY(&copy, &saved->former[i]);
        zend_stack_push(stack, &copy);
    }
}

/* session_set_save_handler() at boot holds for all requests, though each request's end forgets it.
 */
static void save_session_handlers(void) {
    base.session_handler_class = NULL;
    for (int i = 0; i < PS_NUM_APIS; i++) {
        ZVAL_UNDEF(&base.session_handlers[i]);
    }
    if (!session) {
        return;
    }
    for (int i = 0; i < PS_NUM_APIS; i++) {
        ZVAL_COPY(&base.session_handlers[i], &PS(mod_user_names).names[i]);
    }
    if (PS(mod_user_class_name)) {
        base.session_handler_class = zend_string_copy(PS(mod_user_class_name));
    }
}

static void restore_session_handlers(void) {
    for (int i = 0; i < PS_NUM_APIS; i++) {
        ZVAL_COPY(&PS(mod_user_names).names[i], &base.session_handlers[i]);
    }
    if (base.session_handler_class && !PS(mod_user_class_name)) {
        PS(mod_user_class_name) = zend_string_copy(base.session_handler_class);
    }
}

static void drop_session_handlers(void) {
    for (int i = 0; i < PS_NUM_APIS; i++) {
        zval_ptr_dtor(&base.session_handlers[i]);
    }
    if (base.session_handler_class) {
        zend_string_release(base.session_handler_class);
    }
}

static void forget_last_error(void) {
    PG(last_error_type) = 0;
    if (PG(last_error_message)) {
        zend_string_release(PG(last_error_message));
        PG(last_error_message) = NULL;
    }
    if (PG(last_error_file)) {
        zend_string_release(PG(last_error_file));
        PG(last_error_file) = NULL;
    }
}

static void save_base(void) {
    forget_last_error();
    save_session_handlers();
    save_ini();
    save_handlers(&base.error, &EG(user_error_handler), &EG(user_error_handlers));
    save_handlers(&base.exception, &EG(user_exception_handler), &EG(user_exception_handlers));
    base.error_handler_reporting = EG(user_error_handler_error_reporting);
    base.shutdown_functions = BG(user_shutdown_function_names);
    BG(user_shutdown_function_names) = NULL;
    base.environment = BG(putenv_ht);
    zend_hash_init(&BG(putenv_ht), 1, NULL, base.environment.pDestructor, 0);
    const char *locale = setlocale(LC_ALL, NULL);
    base.locale = estrdup(locale ? locale : "C");
    base.umask = umask(077);
    umask(base.umask);
    /* The engine remembers only the first of several changes: from here on, that of a request. */
    base.former_umask = BG(umask);
    BG(umask) = -1;
    if (!VCWD_GETCWD(base.cwd, MAXPATHLEN)) {
        base.cwd[0] = 0;
    }
    samovar_cwd_changed = false;
}

static void restore_locale(void) {
    const char *now = setlocale(LC_ALL, NULL);
    if (now && strcmp(now, base.locale) != 0) {
        setlocale(LC_ALL, base.locale);
        zend_reset_lc_ctype_locale();
        zend_update_current_locale();
    }
}

/* As ext/standard's RSHUTDOWN: what one page's links carry, a session's id for one, is not for the
 * next page's. */
static void forget_url_rewriting(url_adapt_state_ex_t *state) {
    if (state->active) {
        smart_str *work[] = {&state->result, &state->buf, &state->tag, &state->arg,
                             &state->attr_val};
        for (size_t i = 0; i < sizeof work / sizeof work[0]; i++) {
            smart_str_free(work[i]);
        }
        state->active = state->tag_type = state->attr_type = 0;
    }
    smart_str_free(&state->form_app);
    smart_str_free(&state->url_app);
}

static void restore_base(void) {
    forget_url_rewriting(&BG(url_adapt_session_ex));
    forget_url_rewriting(&BG(url_adapt_output_ex));
    php_clear_stat_cache(0, NULL, 0);
    restore_ini();
    restore_handlers(&base.error, &EG(user_error_handler), &EG(user_error_handlers));
    restore_handlers(&base.exception, &EG(user_exception_handler), &EG(user_exception_handlers));
    EG(user_error_handler_error_reporting) = base.error_handler_reporting;
    if (zend_hash_num_elements(&BG(putenv_ht)) > 0) {
        zend_hash_clean(&BG(putenv_ht)); /* Its destructor puts the former values back. */
    }
    if (BG(locale_changed)) {
        restore_locale();
    }
    if (BG(umask) != -1) {
        umask(base.umask);
        BG(umask) = -1;
    }
    if (samovar_cwd_changed && base.cwd[0]) {
        if (VCWD_CHDIR(base.cwd) != 0) {
            samovar_note("PHP Samovar: cannot return to the folder %s after a request", base.cwd);
        }
        samovar_cwd_changed = false;
    }
    forget_last_error();
    EG(exit_status) = 0;
}

/* At the end of serve(): the script's own shutdown sees what it registered at boot. */
static void drop_base(void) {
    drop_session_handlers();
    for (uint32_t i = 0; i < base.ini_count; i++) {
        if (base.ini[i].value) {
            zend_string_release(base.ini[i].value);
        }
    }
    efree(base.ini);
    handlers *both[] = {&base.error, &base.exception};
    for (int h = 0; h < 2; h++) {
        zval_ptr_dtor(&both[h]->current);
        for (int i = 0; i < both[h]->depth; i++) {
            zval_ptr_dtor(&both[h]->former[i]);
        }
        efree(both[h]->former);
    }
    if (BG(user_shutdown_function_names)) {
        php_free_shutdown_functions();
    }
    BG(user_shutdown_function_names) = base.shutdown_functions;
    zend_hash_destroy(&BG(putenv_ht));
    BG(putenv_ht) = base.environment;
    BG(umask) = base.former_umask;
    efree(base.locale);
}

/* ---- the session --------------------------------------------------------------------------- */

/* Three extensions have state that belongs to the request and nothing that an application sets at
 * boot: the session reads, writes and closes it, filter keeps its own copies of the input, zlib
 * keeps what coding the client accepts. Those of others (mbstring, libxml …) are not run: they
 * would undo what the application set at boot. */
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
    start_module(session);
}

static void deactivate_modules(void) {
    stop_module(session);
    if (session) {
        restore_session_handlers();
        zend_hash_str_del(&EG(symbol_table), "_SESSION", sizeof("_SESSION") - 1);
    }
    stop_module(filter);
    samovar_filter_input_filled = false;
    stop_module(zlib);
}

/* ---- one request --------------------------------------------------------------------------- */

static zend_auto_global *superglobals[7];
static const char *const superglobal_names[] = {"_GET",    "_POST", "_COOKIE", "_FILES",
                                                "_SERVER", "_ENV",  "_REQUEST"};

static void find_superglobals(void) {
    for (int i = 0; i < 7; i++) {
        const char *name = superglobal_names[i];
        superglobals[i] = zend_hash_str_find_ptr(CG(auto_globals), name, strlen(name));
    }
}

/* Those that are built on first use stay unbuilt until compiled code mentions them (armed). */
static void fill_superglobals(void) {
    /* The engine republishes the former request's $_FILES unless it is gone. */
    zval *files = &PG(http_globals)[TRACK_VARS_FILES];
    zval_ptr_dtor_nogc(files);
    ZVAL_UNDEF(files);
    for (int i = 0; i < 7; i++) {
        zend_auto_global *a = superglobals[i];
        if (a && a->auto_global_callback && (!a->jit || !a->armed)) {
            a->armed = a->auto_global_callback(a->name);
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

static void arm_time_limit(void) {
    zend_long seconds = MAX(EG(timeout_seconds), 0);
    zend_atomic_bool_store_ex(&EG(timed_out), false);
#ifdef ZEND_MAX_EXECUTION_TIMERS
    zend_set_timeout(seconds, 1);
#else
    const uint64_t slack_ns = (uint64_t)seconds * 1000000000 / 64;
    if (timer.known && timer.seconds == seconds && samovar_cpu_ns() - timer.at_ns <= slack_ns) {
        return;
    }
    struct itimerval limit = {
        .it_value = {.tv_sec = seconds, .tv_usec = (suseconds_t)(slack_ns % 1000000000 / 1000)}};
    limit.it_value.tv_sec += (time_t)(slack_ns / 1000000000);
    setitimer(ITIMER_PROF, &limit, NULL);
    timer.known = true;
    timer.seconds = seconds;
    timer.at_ns = samovar_cpu_ns();
#endif
}

/* As php_request_startup (php-src main/main.c), without what would end the application. */
static void begin(void) {
    PG(in_error_log) = 0;
    /* Left set by a shutdown function of the former request: generators would skip their `finally`.
     */
    CG(unclean_shutdown) = 0;
    PG(during_request_startup) =
        1; /* Whether its warnings are shown is display_startup_errors' to say. */
    PG(header_is_being_sent) = 0;
    PG(connection_status) = PHP_CONNECTION_NORMAL;
    samovar_fill_request_info(samovar_current);
    php_output_activate();
    sapi_activate();
    arm_time_limit();
    if (PG(expose_php)) {
        sapi_add_header(SAPI_PHP_VERSION_HEADER, sizeof(SAPI_PHP_VERSION_HEADER) - 1, 1);
    }
    start_output();
    fill_superglobals();
    activate_modules();
    PG(during_request_startup) = 0;
    SG(sapi_started) = 1;
}

/* A handle on php://input would outlive the body that it reads. */
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

/* As php_request_shutdown. Each step may bail out, and the next must run nevertheless. */
static void end(void) {
    /* No frame of ours above them: an exception that leaves a shutdown function is reported, not
     * kept. */
    EG(current_execute_data) = NULL;
#ifdef ZEND_HAS_OOM
    /* The error of the memory limit was reported: shutdown functions may run after it. */
    EG(delayed_oom).state = ZEND_OOM_STATE_NONE;
#endif
    zend_try {
        php_call_shutdown_functions();
    }
    zend_end_try();
    if (BG(user_shutdown_function_names)) {
        php_free_shutdown_functions();
        BG(user_shutdown_function_names) = NULL;
    }
    zend_try {
        php_output_end_all();
    }
    zend_end_try();
    zend_try {
        deactivate_modules();
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
    size_t peak = zend_memory_peak_usage(0);
    zend_memory_reset_peak_usage();
    SG(server_context) = NULL;
    samovar_current = NULL;
    samovar_finish(peak);
    restore_base();
    /* Between requests there is nobody to send headers to, and the output layer must exist. */
    php_output_activate();
    SG(request_info).no_headers = 1;
}

static void answer_500(void) {
    if (!SG(headers_sent)) {
        SG(sapi_headers).http_response_code = 500;
    }
}

/* As zend_user_exception_handler, but with a frame above it an exception that the handler throws
 * would be dropped there: it stays in EG(exception), to be reported. */
static void call_exception_handler(void) {
    zend_object *thrown = EG(exception);
    zval handler, argument, returned;
    EG(exception) = NULL;
    ZVAL_OBJ(&argument, thrown);
    ZVAL_COPY_VALUE(&handler, &EG(user_exception_handler));
    /* Where the handler finds itself when it restores the former one. */
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
    if (zend_is_unwind_exit(EG(exception))) {
        zend_clear_exception(); /* exit(): a normal end. */
        return;
    }
    if (Z_TYPE(EG(user_exception_handler)) != IS_UNDEF) {
        call_exception_handler();
    }
    if (EG(exception)) {
        answer_500();
        zend_exception_error(EG(exception), E_ERROR);
    }
}

static void call_handler(void) {
    zval returned, request;
    ZVAL_UNDEF(&returned);
    ZVAL_UNDEF(&request);
    zend_fcall_info call = handler_info;
    call.retval = &returned;
    call.param_count = 0;
    if (wants_request) {
        ZVAL_OBJ(&request, samovar_request_new());
        call.params = &request;
        call.param_count = 1;
    }
    zend_call_function(&call, &handler_cache);
    if (!EG(exception)) {
        samovar_deliver(&returned);
    }
    zval_ptr_dtor(&returned);
    zval_ptr_dtor(&request);
#ifdef ZEND_HAS_OOM
    /* memory_limit is a delayed unwind since 8.2.33: it looks like exit(), but is a fatal error. */
    if (ZEND_HAS_OOM()) {
        if (EG(exception)) {
            zend_clear_exception();
        }
        zend_bailout();
    }
#endif
    if (EG(exception)) {
        report_exception();
    }
}

/* False: a fatal error has left the engine in a state that only a new boot mends. */
static bool dispatch(bool begun) {
    zend_execute_data *caller = EG(current_execute_data);
    zend_try {
        if (!begun) {
            begin();
        }
        call_handler();
    }
    zend_catch {
        PG(during_request_startup) = 0;
        if (!(PG(connection_status) & PHP_CONNECTION_ABORTED)) {
            answer_500();
        }
    }
    zend_end_try();
    EG(current_execute_data) = caller;
    end();
    EG(current_execute_data) = caller;
    /* A shutdown function's or an output handler's: the engine catches it and goes on, unclean. */
    return !CG(unclean_shutdown);
}

/* For scripts other than the front controller: the handler answers the one request. */
static void serve_once(void) {
    call_handler();
}

static void serve_all(void) {
    volatile bool begun = samovar_current != NULL;
    volatile bool intact = true;
    if (!begun) {
        zend_llist_clean(
            &SG(sapi_headers).headers); /* Set at boot, when there was nobody to send them to. */
    }
    session = module_named("session");
    filter = module_named("filter");
    zlib = module_named("zlib");
    find_superglobals();
    save_base();
    samovar_serving = true;
    timer.known = false;
    samovar_resident();
    while (intact) {
        if (!begun && !(samovar_current = samovar_take())) {
            break;
        }
        samovar_answered = false;
        intact = dispatch(begun);
        begun = false;
    }
    samovar_serving = false;
    drop_base();
    samovar_outcome = intact ? SAMOVAR_RUN_STOP : SAMOVAR_RUN_RESTART;
    if (!intact) {
        zend_bailout();
    }
}

ZEND_FUNCTION(Samovar_serve) {
    zend_fcall_info info;
    zend_fcall_info_cache cache;
    zend_long rollback_every = 0;
    ZEND_PARSE_PARAMETERS_START(1, 2)
    Z_PARAM_FUNC(info, cache)
    Z_PARAM_OPTIONAL
    Z_PARAM_LONG(rollback_every)
    ZEND_PARSE_PARAMETERS_END();
    if (samovar_serving) {
        zend_throw_error(NULL, "Samovar\\serve() is already serving: it cannot be nested");
        RETURN_THROWS();
    }
    if (rollback_every != 0) {
        zend_argument_value_error(2, "must be 0: this build cannot roll back");
        RETURN_THROWS();
    }
    handler_info = info;
    handler_cache = cache;
    /* The handler must survive the frame that passed it. */
    Z_TRY_ADDREF(handler_info.function_name);
    wants_request = handler_cache.function_handler->common.num_args > 0;
    if (samovar_current && !(samovar_current->flags & SAMOVAR_APP)) {
        serve_once();
    } else {
        serve_all();
    }
    zval_ptr_dtor(&handler_info.function_name);
}
