/* The PHP extension in this binary: its functions, classes and constants, and its hooks for the
 * start of PHP and for the begin and end of a PHP request. */
#include "module.h"
#include "functions/apcu.h"
#include "functions/jobs.h"
#include "functions/request_object.h"
#include "functions/pinba.h"
#include "functions/response_object.h"
#include "functions/shared.h"
#include "functions/tasks.h"
#include "functions/timer_object.h"
#include "functions/wrapped.h"
#include "graph/allocations.h"
#include "graph/graph.h"
#include "insight/errors.h"
#include "insight/request_accounting.h"
#include "loads/loads.h"
#include "mocks/mocks.h"
#include "model/frankenphp.h"
#include "model/script.h"
#include "model/skippable_destruction.h"
#include "outside/request_reads.h"
#include "rollback/reseed.h"
#include "sapi/name.h"
#include "sapi/sapi.h"
#include "sapi/variables.h"
#include <ext/standard/info.h>
#include "functions/arginfo/constants.h"
#include "functions/arginfo/prototypes.h"
#include "functions/arginfo/functions.h"

/* PATH_INFO is always split as php-fpm does with its default. Applications read the directive. */
PHP_INI_BEGIN()
PHP_INI_ENTRY("cgi.fix_pathinfo", "1", PHP_INI_SYSTEM, NULL)
PHP_INI_END()

static PHP_MINIT_FUNCTION(samovar) {
    REGISTER_INI_ENTRIES();
    SAMOVAR_REGISTER_CONSTANTS();
    /* Done here, because strings that are interned later live for one request only. */
    samovar_variables_startup();
    samovar_request_startup();
    samovar_response_startup();
    samovar_counter_startup();
    samovar_table_startup();
    samovar_lock_startup();
    samovar_cache_startup();
    samovar_limiter_startup();
    samovar_breaker_startup();
    samovar_queue_startup();
    samovar_job_startup();
    samovar_task_startup();
    samovar_tasks_startup();
    samovar_channel_startup();
    samovar_pool_startup();
    samovar_timer_object_startup();
    samovar_pinba_startup(module_number);
    samovar_apcu_startup();
    samovar_mock_class_startup();
    samovar_request_accounting_startup();
    samovar_errors_startup();
    if (samovar_settings->traces) {
        samovar_graph_startup();
    }
    samovar_script_startup();
    samovar_skippable_startup();
    samovar_loads_minit();
    samovar_sapi_minit();
    samovar_request_reads_startup();
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
    samovar_measures_startup();
    return SUCCESS;
}

static PHP_MSHUTDOWN_FUNCTION(samovar) {
    (void)type;
    UNREGISTER_INI_ENTRIES();
    return SUCCESS;
}

static PHP_RSHUTDOWN_FUNCTION(samovar) {
    (void)type;
    (void)module_number;
    samovar_tasks_end(); /* Tasks of shutdown functions, destructors and output callbacks. */
    if (!samovar_below_checkpoint) {
        samovar_sapi_name_stays(); /* Otherwise no constant is freed. */
    }
    samovar_mocks_end();
    samovar_measures_end();
    samovar_graph_allocations_end();
    samovar_peak_bytes = zend_memory_peak_usage(0);
    return SUCCESS;
}

static PHP_MINFO_FUNCTION(samovar) {
    (void)zend_module;
    php_info_print_table_start();
    php_info_print_table_row(2, "Samovar", "active");
    php_info_print_table_end();
}

zend_module_entry samovar_module_entry = {STANDARD_MODULE_HEADER, "samovar",
                                          samovar_functions,      PHP_MINIT(samovar),
                                          PHP_MSHUTDOWN(samovar), PHP_RINIT(samovar),
                                          PHP_RSHUTDOWN(samovar), PHP_MINFO(samovar),
                                          SAMOVAR_VERSION,        STANDARD_MODULE_PROPERTIES};
