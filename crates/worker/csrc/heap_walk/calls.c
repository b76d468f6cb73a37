/* Records calls of functions by name and first argument, with the line of the last call. */
#include "heap_walk/calls.h"

enum { WATCHED_MAX = 96, NOTES_MAX = 512 };

static const char *const NAMES[] = {"ini_set",
                                    "ini_alter",
                                    "error_reporting",
                                    "set_include_path",
                                    "ignore_user_abort",
                                    "set_time_limit",
                                    "gc_disable",
                                    "gc_enable",
                                    "setlocale",
                                    "locale_set_default",
                                    "date_default_timezone_set",
                                    "putenv",
                                    "umask",
                                    "chdir",
                                    "define",
                                    "set_error_handler",
                                    "restore_error_handler",
                                    "set_exception_handler",
                                    "restore_exception_handler",
                                    "register_shutdown_function",
                                    "spl_autoload_register",
                                    "spl_autoload_unregister",
                                    "stream_wrapper_register",
                                    "stream_wrapper_unregister",
                                    "stream_wrapper_restore",
                                    "stream_filter_register",
                                    "stream_context_set_default",
                                    "mb_internal_encoding",
                                    "mb_regex_encoding",
                                    "mb_language",
                                    "mb_substitute_character",
                                    "mb_detect_order",
                                    "mb_http_output",
                                    "mb_regex_set_options",
                                    "libxml_use_internal_errors",
                                    "libxml_set_external_entity_loader",
                                    "libxml_set_streams_context",
                                    "iconv_set_encoding",
                                    "session_name",
                                    "session_save_path",
                                    "session_module_name",
                                    "session_cache_limiter",
                                    "session_set_cookie_params",
                                    "session_set_save_handler",
                                    "pcntl_signal",
                                    "pcntl_async_signals",
                                    "pcntl_sigprocmask",
                                    "pcntl_alarm",
                                    "pcntl_fork",
                                    "proc_nice",
                                    "posix_setrlimit",
                                    "posix_setuid",
                                    "posix_setgid",
                                    SAMOVAR_OPENERS,
                                    SAMOVAR_MAPPERS};

static struct {
    const char *name;
    zif_handler inner;
} watched[WATCHED_MAX];
static uint32_t watched_count;
bool samovar_calls_pause;

static samovar_call_note notes[NOTES_MAX];
static uint32_t note_count;

/* Writes the first argument as text; for putenv() only the part before `=`. */
static void put_argument(const zend_execute_data *call, char *to) {
    to[0] = 0;
    if (ZEND_CALL_NUM_ARGS(call) == 0) {
        return;
    }
    const zval *first = ZEND_CALL_ARG(call, 1);
    ZVAL_DEREF(first);
    if (Z_TYPE_P(first) == IS_STRING) {
        snprintf(to, CALL_ARGUMENT, "%s", Z_STRVAL_P(first));
        if (strcmp(ZSTR_VAL(call->func->common.function_name), "putenv") == 0) {
            to[strcspn(to, "=")] = 0;
        }
    } else if (Z_TYPE_P(first) == IS_LONG) {
        snprintf(to, CALL_ARGUMENT, ZEND_LONG_FMT, Z_LVAL_P(first));
    }
}

static samovar_call_note *note_of(const char *name, const char *argument) {
    for (uint32_t i = 0; i < note_count; i++) {
        if (notes[i].name == name && strcmp(notes[i].argument, argument) == 0) {
            return &notes[i];
        }
    }
    return note_count < NOTES_MAX ? &notes[note_count++] : NULL;
}

static void note(const zend_execute_data *call, const char *name) {
    char argument[CALL_ARGUMENT];
    put_argument(call, argument);
    samovar_call_note *to = note_of(name, argument);
    if (to) {
        to->name = name;
        snprintf(to->argument, sizeof to->argument, "%s", argument);
        snprintf(to->file, sizeof to->file, "%s", zend_get_executed_filename());
        to->line = zend_get_executed_lineno();
    }
}

static ZEND_NAMED_FUNCTION(call_watched) {
    const char *name = ZSTR_VAL(execute_data->func->common.function_name);
    for (uint32_t i = 0; i < watched_count; i++) {
        if (strcmp(watched[i].name, name) == 0) {
            if (!samovar_calls_pause) {
                note(execute_data, watched[i].name);
            }
            watched[i].inner(INTERNAL_FUNCTION_PARAM_PASSTHRU);
            return;
        }
    }
}

void samovar_calls_watch(void) {
    if (watched_count > 0) {
        return;
    }
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0] && watched_count < WATCHED_MAX; i++) {
        zend_function *f = zend_hash_str_find_ptr(CG(function_table), NAMES[i], strlen(NAMES[i]));
        if (f && f->type == ZEND_INTERNAL_FUNCTION) {
            watched[watched_count].name = NAMES[i];
            watched[watched_count++].inner = f->internal_function.handler;
            f->internal_function.handler = call_watched;
        }
    }
}

uint32_t samovar_calls_noted(const samovar_call_note **all) {
    *all = notes;
    return note_count;
}

void samovar_calls_tell(heap_walk_walk *w) {
    for (uint32_t i = 0; i < note_count; i++) {
        heap_walk_node n = {.kind = HEAP_WALK_CALL, .line = notes[i].line};
        n.key = samovar_heap_walk_text(notes[i].name);
        n.text = samovar_heap_walk_text(notes[i].argument);
        n.place = samovar_heap_walk_text(notes[i].file);
        samovar_walk_fact(w, &n);
    }
}
