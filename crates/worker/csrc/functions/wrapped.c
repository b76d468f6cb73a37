/* Wraps functions of PHP itself whose calls must be noticed. */
#include "functions/wrapped.h"
#include "rollback/process.h"
#include "rollback/reseed.h"
#include "rollback/signals.h"
#include "rollback/taint.h"
#include "sapi/sapi.h"
#include "sapi/variables.h"
#include <ext/random/php_random.h>

bool samovar_cwd_changed;
bool samovar_filter_input_filled;

enum { WRAPPED_MAX = 8 };
static struct {
    const zend_class_entry *scope;
    const char *name;
    zif_handler inner;
} wrapped[WRAPPED_MAX];
static int wrapped_count;

static void call_inner(INTERNAL_FUNCTION_PARAMETERS) {
    const zend_function *called = execute_data->func;
    const char *name = ZSTR_VAL(called->common.function_name);
    for (int i = 0; i < wrapped_count; i++) {
        if (wrapped[i].scope == called->common.scope && strcmp(wrapped[i].name, name) == 0) {
            wrapped[i].inner(INTERNAL_FUNCTION_PARAM_PASSTHRU);
            return;
        }
    }
}

/* The resident model restores the working directory, but only after a request that changed it. */
static ZEND_NAMED_FUNCTION(wrapped_chdir) {
    samovar_cwd_changed = true;
    call_inner(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static ZEND_NAMED_FUNCTION(wrapped_filter) {
    if (!samovar_filter_input_filled && samovar_current) {
        samovar_filter_input_filled = true;
        samovar_fill_filter_input();
    }
    call_inner(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

/* Engines with an explicit seed keep it in every request: reseed.c does not change them. */
static ZEND_NAMED_FUNCTION(wrapped_engine) {
    if (ZEND_NUM_ARGS() > 0 && Z_TYPE_P(ZEND_CALL_ARG(execute_data, 1)) != IS_NULL) {
        if (!samovar_seeded_engines) {
            ALLOC_HASHTABLE(samovar_seeded_engines);
            zend_hash_init(samovar_seeded_engines, 8, NULL, NULL, 0);
        }
        zval yes;
        ZVAL_TRUE(&yes);
        zend_hash_index_update(samovar_seeded_engines, Z_OBJ_HANDLE(EX(This)), &yes);
    }
    call_inner(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

/* The end of a request in ext/pcntl: each signal that had a handler gets its default disposition
 * back, and is unblocked. A pending signal, or an alarm, would then end the process before the
 * response is complete, and the front would run the request again. No handler can be called any
 * more, so both are dropped before. On the console a process ends as with PHP's command line. */
static zend_result (*end_of_pcntl)(SHUTDOWN_FUNC_ARGS);

static zend_result end_pcntl(SHUTDOWN_FUNC_ARGS) {
    if (samovar_place != SAMOVAR_RUNS_CONSOLE) {
        if (samovar_persistent) {
            samovar_process_end_timers(samovar_process_state());
        } else {
            samovar_taint_end_timers();
        }
        samovar_signals_end();
    }
    return end_of_pcntl(SHUTDOWN_FUNC_ARGS_PASSTHRU);
}

static void wrap_pcntl(void) {
    zend_module_entry *pcntl = zend_hash_str_find_ptr(&module_registry, "pcntl", strlen("pcntl"));
    if (pcntl && pcntl->request_shutdown_func) {
        end_of_pcntl = pcntl->request_shutdown_func;
        pcntl->request_shutdown_func = end_pcntl;
    }
}

static void wrap(const zend_class_entry *scope, const char *name, zif_handler outer) {
    const HashTable *table = scope ? &scope->function_table : CG(function_table);
    zend_function *f = zend_hash_str_find_ptr(table, name, strlen(name));
    if (f && f->type == ZEND_INTERNAL_FUNCTION && wrapped_count < WRAPPED_MAX) {
        wrapped[wrapped_count].scope = scope;
        wrapped[wrapped_count].name = name;
        wrapped[wrapped_count++].inner = f->internal_function.handler;
        f->internal_function.handler = outer;
    }
}

void samovar_wrap_functions(void) {
    wrap_pcntl();
    wrap(NULL, "chdir", wrapped_chdir);
    wrap(NULL, "filter_input", wrapped_filter);
    wrap(NULL, "filter_input_array", wrapped_filter);
    wrap(NULL, "filter_has_var", wrapped_filter);
    wrap(random_ce_Random_Engine_Mt19937, "__construct", wrapped_engine);
    wrap(random_ce_Random_Engine_PcgOneseq128XslRr64, "__construct", wrapped_engine);
    wrap(random_ce_Random_Engine_Xoshiro256StarStar, "__construct", wrapped_engine);
}
