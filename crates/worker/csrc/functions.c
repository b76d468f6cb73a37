/* What PHP code can call: the module's functions and classes, and the wrapped ones of PHP itself.
 */
#include "samovar.h"
#include <php_output.h>
#include <ext/standard/info.h>
#include <ext/standard/head.h>
#if PHP_VERSION_ID >= 80200
#include <ext/random/php_random.h>
#endif

void samovar_swap_sapi_name(void);
size_t samovar_peak_bytes;
bool samovar_cwd_changed;
HashTable *samovar_seeded_engines;
bool samovar_filter_input_filled;

bool samovar_finish_answer(void) {
    if (!samovar_current || samovar_answered) {
        return false;
    }
    php_output_end_all();
    php_header();
    samovar_end_answer();
    samovar_answered = true;
    return true;
}

PHP_FUNCTION(fastcgi_finish_request) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_BOOL(samovar_finish_answer());
}

PHP_FUNCTION(apache_request_headers) {
    ZEND_PARSE_PARAMETERS_NONE();
    array_init(return_value);
    samovar_request_headers(return_value);
}

/* ---- functions of PHP that must tell us something ------------------------------------------ */

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

/* The resident model puts the working directory back, but only after a request that changed it. */
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

/* Engines with a seed of their own keep to it in every request; reseed.c leaves them alone. */
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
    wrap(NULL, "chdir", wrapped_chdir);
    wrap(NULL, "filter_input", wrapped_filter);
    wrap(NULL, "filter_input_array", wrapped_filter);
    wrap(NULL, "filter_has_var", wrapped_filter);
#if PHP_VERSION_ID >= 80200
    wrap(random_ce_Random_Engine_Mt19937, "__construct", wrapped_engine);
    wrap(random_ce_Random_Engine_PcgOneseq128XslRr64, "__construct", wrapped_engine);
    wrap(random_ce_Random_Engine_Xoshiro256StarStar, "__construct", wrapped_engine);
#endif
}

/* ---- the module ---------------------------------------------------------------------------- */

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_bool, 0, 0, _IS_BOOL, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_array, 0, 0, IS_ARRAY, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_checkpoint, 0, 0, IS_VOID, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_warmup, 0, 1, IS_VOID, 0)
ZEND_ARG_TYPE_INFO(0, work, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_serve, 0, 1, IS_VOID, 0)
ZEND_ARG_TYPE_INFO(0, handler, IS_CALLABLE, 0)
ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, rollbackEvery, IS_LONG, 0, "0")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_handle_request, 0, 1, _IS_BOOL, 0)
ZEND_ARG_TYPE_INFO(0, callback, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_headers_send, 0, 0, IS_LONG, 0)
ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, status, IS_LONG, 0, "200")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_MASK_EX(arginfo_response_headers, 0, 0, MAY_BE_ARRAY | MAY_BE_BOOL)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_log, 0, 1, IS_VOID, 0)
ZEND_ARG_TYPE_INFO(0, message, IS_STRING, 0)
ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, level, IS_LONG, 0, "0")
ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, context, IS_ARRAY, 0, "[]")
ZEND_END_ARG_INFO()

/* Macros without commas between them: clang-format would indent each below the one before. */
/* clang-format off */
static const zend_function_entry functions[] = {
    ZEND_NS_FENTRY("Samovar", checkpoint, ZEND_FN(Samovar_checkpoint), arginfo_checkpoint, 0)
    ZEND_NS_FENTRY("Samovar", serve, ZEND_FN(Samovar_serve), arginfo_serve, 0)
    ZEND_NS_FENTRY("Samovar", warmup, ZEND_FN(Samovar_warmup), arginfo_warmup, 0)
    PHP_FE(fastcgi_finish_request, arginfo_bool)
    PHP_FE(apache_request_headers, arginfo_array)
    PHP_FALIAS(getallheaders, apache_request_headers, arginfo_array)
    PHP_FE(frankenphp_handle_request, arginfo_handle_request)
    PHP_FE(headers_send, arginfo_headers_send)
    PHP_FALIAS(frankenphp_finish_request, fastcgi_finish_request, arginfo_bool)
    PHP_FALIAS(frankenphp_request_headers, apache_request_headers, arginfo_array)
    PHP_FE(frankenphp_response_headers, arginfo_response_headers)
    PHP_FALIAS(apache_response_headers, frankenphp_response_headers, arginfo_response_headers)
    PHP_FE(frankenphp_log, arginfo_log)
    PHP_FE_END
};
/* clang-format on */

static PHP_MINIT_FUNCTION(samovar) {
    (void)type;
    samovar_frankenphp_startup(module_number);
    /* Here, because strings interned later live for one request only. */
    samovar_variables_startup();
    samovar_request_startup();
    samovar_response_startup();
    samovar_swap_sapi_name();
    samovar_sapi_name_varies(); /* Preloading compiles before the first request. */
    return SUCCESS;
}

static PHP_RINIT_FUNCTION(samovar) {
    (void)type;
    (void)module_number;
    samovar_sapi_name_varies();
    samovar_filter_input_filled = false;
    samovar_cwd_changed = false;
    samovar_frankenphp_handled = false;
    samovar_seeded_engines = NULL;
    return SUCCESS;
}

static PHP_RSHUTDOWN_FUNCTION(samovar) {
    (void)type;
    (void)module_number;
    samovar_sapi_name_stays();
    samovar_peak_bytes = zend_memory_peak_usage(0);
    return SUCCESS;
}

static PHP_MINFO_FUNCTION(samovar) {
    (void)zend_module;
    php_info_print_table_start();
    php_info_print_table_row(2, "Samovar", "active");
    php_info_print_table_end();
}

zend_module_entry samovar_module_entry = {STANDARD_MODULE_HEADER,
                                          "samovar",
                                          functions,
                                          PHP_MINIT(samovar),
                                          NULL,
                                          PHP_RINIT(samovar),
                                          PHP_RSHUTDOWN(samovar),
                                          PHP_MINFO(samovar),
                                          "0.1.0",
                                          STANDARD_MODULE_PROPERTIES};
