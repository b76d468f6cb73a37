/* What PHP code can call: the module's functions and classes, and the wrapped ones of PHP itself.
 */
#include "samovar.h"
#include <php_output.h>
#include <ext/standard/info.h>
#include <ext/standard/head.h>

void samovar_swap_sapi_name(void);
size_t samovar_peak_bytes;
bool samovar_cwd_changed;
bool samovar_filter_input_filled;

PHP_FUNCTION(fastcgi_finish_request) {
    ZEND_PARSE_PARAMETERS_NONE();
    if (!samovar_current || samovar_answered) {
        RETURN_FALSE;
    }
    php_output_end_all();
    php_header();
    samovar_end_answer();
    samovar_answered = true;
    RETURN_TRUE;
}

PHP_FUNCTION(apache_request_headers) {
    ZEND_PARSE_PARAMETERS_NONE();
    array_init(return_value);
    samovar_request_headers(return_value);
}

/* ---- functions of PHP that must tell us something ------------------------------------------ */

enum { WRAPPED_MAX = 8 };
static struct {
    const char *name;
    zif_handler inner;
} wrapped[WRAPPED_MAX];
static int wrapped_count;

static zif_handler inner_of(const zend_execute_data *call) {
    const char *name = ZSTR_VAL(call->func->common.function_name);
    for (int i = 0; i < wrapped_count; i++) {
        if (strcmp(wrapped[i].name, name) == 0) {
            return wrapped[i].inner;
        }
    }
    return NULL;
}

/* The resident model puts the working directory back, but only after a request that changed it. */
static ZEND_NAMED_FUNCTION(wrapped_chdir) {
    samovar_cwd_changed = true;
    inner_of(execute_data)(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static ZEND_NAMED_FUNCTION(wrapped_filter) {
    if (!samovar_filter_input_filled && samovar_current) {
        samovar_filter_input_filled = true;
        samovar_fill_filter_input();
    }
    inner_of(execute_data)(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static void wrap(const char *name, zif_handler outer) {
    zend_function *f = zend_hash_str_find_ptr(CG(function_table), name, strlen(name));
    if (f && f->type == ZEND_INTERNAL_FUNCTION && wrapped_count < WRAPPED_MAX) {
        wrapped[wrapped_count].name = name;
        wrapped[wrapped_count++].inner = f->internal_function.handler;
        f->internal_function.handler = outer;
    }
}

void samovar_wrap_functions(void) {
    wrap("chdir", wrapped_chdir);
    wrap("filter_input", wrapped_filter);
    wrap("filter_input_array", wrapped_filter);
    wrap("filter_has_var", wrapped_filter);
}

/* ---- the module ---------------------------------------------------------------------------- */

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_bool, 0, 0, _IS_BOOL, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_array, 0, 0, IS_ARRAY, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_serve, 0, 1, IS_VOID, 0)
ZEND_ARG_TYPE_INFO(0, handler, IS_CALLABLE, 0)
ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, rollbackEvery, IS_LONG, 0, "0")
ZEND_END_ARG_INFO()

static const zend_function_entry functions[] = {
    ZEND_NS_FENTRY("Samovar", serve, ZEND_FN(Samovar_serve), arginfo_serve, 0)
        PHP_FE(fastcgi_finish_request, arginfo_bool) PHP_FE(apache_request_headers, arginfo_array)
            PHP_FALIAS(getallheaders, apache_request_headers, arginfo_array) PHP_FE_END};

static PHP_MINIT_FUNCTION(samovar) {
    (void)type;
    (void)module_number;
    /* Here, because strings interned later live for one request only. */
    samovar_variables_startup();
    samovar_request_startup();
    samovar_response_startup();
    samovar_swap_sapi_name();
    return SUCCESS;
}

static PHP_RINIT_FUNCTION(samovar) {
    (void)type;
    (void)module_number;
    samovar_filter_input_filled = false;
    samovar_cwd_changed = false;
    return SUCCESS;
}

static PHP_RSHUTDOWN_FUNCTION(samovar) {
    (void)type;
    (void)module_number;
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
