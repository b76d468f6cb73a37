/* The apcu extension as applications see it: its presence, its settings, and statistics of its
 * cache. */
#include "functions/apcu.h"
#include "sapi/sapi.h"
#include <ext/standard/info.h>
#include "functions/arginfo/prototypes.h"
#include "functions/arginfo/apcu_constants.h"
#include "functions/arginfo/apcu_functions.h"

/* Version of the extension whose functions these are. */
#define VERSION "5.1.22"

static const char NAME[] = "apcu";

bool samovar_apcu_is_on;
static int64_t opened = -1;

bool samovar_apcu_cache(uint32_t *cache) {
    if (opened < 0 && samovar_apcu_is_on) {
        opened = samovar_noted_open(NAME, sizeof NAME - 1, (int64_t)samovar_settings->apcu_bytes);
        if (opened < 0) {
            const samovar_problem *problem = samovar_shared_problem();
            php_error_docref(NULL, E_WARNING, "%s",
                             problem && problem->text
                                 ? problem->text
                                 : "There is no shared memory in this process");
        }
    }
    *cache = (uint32_t)opened;
    return opened >= 0;
}

/* ---- figures ------------------------------------------------------------------------------- */

static void add_entry(zval *list, const samovar_noted *found) {
    zval entry;
    array_init(&entry);
    add_assoc_stringl(&entry, "info", found->key, found->key_len);
    add_assoc_long(&entry, "ttl", found->ttl);
    add_assoc_double(&entry, "num_hits", found->was_read);
    add_assoc_long(&entry, "mtime", found->changed);
    add_assoc_long(&entry, "creation_time", found->stored);
    add_assoc_long(&entry, "deletion_time", 0);
    add_assoc_long(&entry, "access_time", found->changed);
    add_assoc_long(&entry, "ref_count", 0);
    add_assoc_long(&entry, "mem_size", (zend_long)found->item_bytes);
    add_next_index_zval(list, &entry);
}

ZEND_FUNCTION(apcu_cache_info) {
    bool limited = false;
    uint32_t cache;
    samovar_noted_figures figures;
    samovar_noted found;
    zval list, empty, distribution;
    zend_long entries = 0, next = 0;
    double bytes = 0;
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_BOOL(limited)
    ZEND_PARSE_PARAMETERS_END();
    if (!samovar_apcu_cache(&cache)) {
        php_error_docref(NULL, E_WARNING,
                         "No APC info available.  Perhaps APC is not enabled? Check apc.enabled in "
                         "your ini file");
        RETURN_FALSE;
    }
    samovar_noted_tell(cache, &figures);
    array_init(&list);
    array_init(&distribution);
    while ((next = samovar_noted_walk(cache, (uint64_t)next, &found)) >= 0) {
        entries++;
        bytes += (double)found.item_bytes;
        if (!limited) {
            add_entry(&list, &found);
            add_index_long(&distribution, (zend_ulong)next - 1, 1);
        }
    }
    array_init(return_value);
    add_assoc_long(return_value, "num_slots", (zend_long)figures.slots);
    add_assoc_long(return_value, "ttl", 0);
    add_assoc_double(return_value, "num_hits", (double)figures.hits);
    add_assoc_double(return_value, "num_misses", (double)figures.misses);
    add_assoc_double(return_value, "num_inserts", (double)figures.stored);
    add_assoc_long(return_value, "num_entries", entries);
    add_assoc_double(return_value, "expunges", (double)figures.gone);
    add_assoc_long(return_value, "start_time", (zend_long)figures.since);
    add_assoc_double(return_value, "mem_size", bytes);
    add_assoc_string(return_value, "memory_type", "mmap");
    if (limited) {
        zval_ptr_dtor(&list);
        zval_ptr_dtor(&distribution);
        return;
    }
    array_init(&empty);
    add_assoc_zval(return_value, "cache_list", &list);
    add_assoc_zval(return_value, "deleted_list", &empty);
    add_assoc_zval(return_value, "slot_distribution", &distribution);
}

ZEND_FUNCTION(apcu_sma_info) {
    bool limited = false;
    uint32_t cache;
    samovar_noted_figures figures;
    zval lists, blocks, block;
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_BOOL(limited)
    ZEND_PARSE_PARAMETERS_END();
    if (!samovar_apcu_cache(&cache)) {
        php_error_docref(NULL, E_WARNING,
                         "No APC SMA info available.  Perhaps APC is disabled via apc.enabled?");
        RETURN_FALSE;
    }
    samovar_noted_tell(cache, &figures);
    const uint64_t left = figures.room - MIN(figures.room, figures.bytes);
    array_init(return_value);
    add_assoc_long(return_value, "num_seg", 1);
    add_assoc_double(return_value, "seg_size", (double)figures.room);
    add_assoc_double(return_value, "avail_mem", (double)left);
    if (limited) {
        return;
    }
    array_init(&block);
    add_assoc_long(&block, "size", (zend_long)left);
    add_assoc_long(&block, "offset", (zend_long)(figures.room - left));
    array_init(&blocks);
    add_next_index_zval(&blocks, &block);
    array_init(&lists);
    add_next_index_zval(&lists, &blocks);
    add_assoc_zval(return_value, "block_lists", &lists);
}

ZEND_FUNCTION(apcu_key_info) {
    zend_string *key;
    uint32_t cache;
    samovar_noted found;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_STR(key)
    ZEND_PARSE_PARAMETERS_END();
    if (!samovar_apcu_cache(&cache) ||
        samovar_noted_find(cache, ZSTR_VAL(key), ZSTR_LEN(key), false, &found) <= 0) {
        RETURN_NULL();
    }
    array_init(return_value);
    add_assoc_long(return_value, "hits", found.was_read);
    add_assoc_long(return_value, "access_time", found.changed);
    add_assoc_long(return_value, "mtime", found.changed);
    add_assoc_long(return_value, "creation_time", found.stored);
    add_assoc_long(return_value, "deletion_time", 0);
    add_assoc_long(return_value, "ttl", found.ttl);
    add_assoc_long(return_value, "refs", 0);
}

/* ---- the extension ------------------------------------------------------------------------- */

/* Directives that applications read. */
PHP_INI_BEGIN()
PHP_INI_ENTRY("apc.enabled", "1", PHP_INI_SYSTEM, NULL)
PHP_INI_ENTRY("apc.enable_cli", "1", PHP_INI_SYSTEM, NULL)
PHP_INI_ENTRY("apc.serializer", "php", PHP_INI_SYSTEM, NULL)
PHP_INI_ENTRY("apc.use_request_time", "0", PHP_INI_ALL, NULL)
PHP_INI_END()

static PHP_MINIT_FUNCTION(apcu) {
    (void)type;
    REGISTER_INI_ENTRIES();
    samovar_apcu_is_on = INI_BOOL("apc.enabled");
    SAMOVAR_REGISTER_CONSTANTS_OF_APCU();
    samovar_apcu_iterator_startup();
    return SUCCESS;
}

static PHP_MSHUTDOWN_FUNCTION(apcu) {
    (void)type;
    UNREGISTER_INI_ENTRIES();
    return SUCCESS;
}

static PHP_MINFO_FUNCTION(apcu) {
    php_info_print_table_start();
    php_info_print_table_row(2, "APCu Support", samovar_apcu_is_on ? "Enabled" : "Disabled");
    php_info_print_table_row(2, "Version", VERSION);
    php_info_print_table_row(2, "Whose", "Samovar");
    php_info_print_table_end();
    display_ini_entries(zend_module);
}

static zend_module_entry apcu_module_entry = {STANDARD_MODULE_HEADER,
                                              "apcu",
                                              samovar_apcu_functions,
                                              PHP_MINIT(apcu),
                                              PHP_MSHUTDOWN(apcu),
                                              NULL,
                                              NULL,
                                              PHP_MINFO(apcu),
                                              VERSION,
                                              STANDARD_MODULE_PROPERTIES};

void samovar_apcu_startup(void) {
    if (samovar_settings->apcu_bytes == 0 ||
        zend_hash_str_exists(&module_registry, NAME, sizeof NAME - 1)) {
        return;
    }
    /* Registered as its own module, because applications check for the extension by its name. */
    zend_module_entry *starting = EG(current_module);
    zend_startup_module(&apcu_module_entry);
    EG(current_module) = starting;
}
