/* The end of a request below a checkpoint. All effects that are visible outside are those of
 * php-fpm (shutdown functions, destructors, output, streams, transactions). Memory is left as it
 * is, because the rollback restores all of it. */
#include "model/end_below.h"
#include "boundary.h"
#include "heap_walk/report.h"
#include "compat.h"
#include "loads/loads.h"
#include "memory/persistent.h"
#include "model/skippable_destruction.h"
#include "model/warmup.h"
#include "outside/connections.h"
#include "rollback/process.h"
#include "rollback/rollback.h"
#include "sapi/opcache.h"
#include "sapi/sapi.h"
#include "tasks/task.h"
#include <ext/standard/basic_functions.h>
#include <ext/standard/file.h>
#include <unistd.h>

/* The first resource after those of the image. Later ones are closed at the end of the request. */
static zend_ulong first_resource;

/* Modules whose end functions are called; each list ends with a NULL. NULL: there is no image
 * yet. */
static zend_module_entry **ending, **ending_last;

/* ---- before the image ---------------------------------------------------------------------- */

/* Keeps connections of the boot beyond the end of a request. */
static void hold_resources(void) {
    zval *resource;
    ZEND_HASH_FOREACH_VAL(&EG(regular_list), resource) {
        Z_ADDREF_P(resource);
    }
    ZEND_HASH_FOREACH_END();
}

/* The end functions of these modules free memory and reset settings of the request, with no
 * effect outside: the rollback does the same at a lower cost. (Readline's restores a terminal,
 * which no worker has.) */
static bool ends_in_memory(const zend_module_entry *module) {
    const char *const names[] = {"date",     "filter", "intl",     "libxml",
                                 "mbstring", "pcre",   "readline", "SPL"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(module->name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* zend_post_deactivate_modules() would also make opcache release the lock which shows opcache
 * that the image points into its memory. */
static bool ends_last(const zend_module_entry *module) {
    return module->post_deactivate_func && strcmp(module->name, "Zend OPcache") != 0 &&
           !ends_in_memory(module);
}

/* In the engine's order: from the last module to the first, then the last end functions in the
 * order of the modules. */
static void list_modules(void) {
    const uint32_t count = zend_hash_num_elements(&module_registry);
    ending = pemalloc((count + 1) * sizeof *ending, 1);
    ending_last = pemalloc((count + 1) * sizeof *ending_last, 1);
    uint32_t ends = 0, lasts = 0;
    zend_module_entry *module;
    ZEND_HASH_REVERSE_FOREACH_PTR(&module_registry, module) {
        if (module->request_shutdown_func && !ends_in_memory(module)) {
            ending[ends++] = module;
        }
    }
    ZEND_HASH_FOREACH_END();
    ZEND_HASH_FOREACH_PTR(&module_registry, module) {
        if (ends_last(module)) {
            ending_last[lasts++] = module;
        }
    }
    ZEND_HASH_FOREACH_END();
    ending[ends] = ending_last[lasts] = NULL;
}

void samovar_end_below_prepare(void) {
    list_modules();
    samovar_skippable_prepare();
    hold_resources();
    samovar_connections_remember(samovar_settings->checkpoint_connections);
    first_resource = (zend_ulong)EG(regular_list).nNextFreeElement;
}

/* ---- the end ------------------------------------------------------------------------------- */

/* Closes the resources that the request has opened, the newest first, as zend_close_rsrc_list()
 * does. Streams are flushed, temporary files are deleted, connections are closed properly. */
static void close_resources(void) {
    HashTable *list = &EG(regular_list);
    for (uint32_t i = list->nNumUsed; i-- > 0;) {
        zval *zv = list->nNumUsed > i ? ZEND_HASH_ELEMENT(list, i) : NULL;
        if (zv && Z_TYPE_P(zv) == IS_RESOURCE && (zend_ulong)Z_RES_HANDLE_P(zv) >= first_resource) {
            zend_list_close(Z_RES_P(zv));
        }
    }
}

/* Like zend_objects_store_free_object_storage(): an archive is written, a transaction is rolled
 * back. */
static void free_objects(void) {
    if (samovar_objects_skipped()) {
        return;
    }
    zend_objects_store *store = &EG(objects_store);
    for (uint32_t i = store->top; i-- > 1;) {
        zend_object *object = store->object_buckets[i];
        if (IS_OBJ_VALID(object) && !(OBJ_FLAGS(object) & IS_OBJ_FREE_CALLED) &&
            samovar_is_freed_seen(i, object)) {
            GC_ADD_FLAGS(object, IS_OBJ_FREE_CALLED);
            GC_ADDREF(object);
            object->handlers->free_obj(object);
        }
    }
}

/* Freeing it would write one more page, which the rollback would have to copy back. */
static void leave_output_handlers(void) {
    if (samovar_persistent && zend_stack_is_empty(&OG(handlers))) {
        OG(handlers).elements = NULL;
    }
}

/* Modules that dl() has loaded in this request are on no list. */
static bool are_listed(void) {
    return ending && !EG(full_tables_cleanup);
}

/* Like zend_deactivate_modules(). */
static void end_modules(void) {
    if (!are_listed()) {
        zend_deactivate_modules();
        return;
    }
    EG(current_execute_data) = NULL;
    if (samovar_persistent) {
        samovar_process_state()->modules_end = true;
    }
    zend_try {
        for (zend_module_entry **module = ending; *module; module++) {
            (*module)->request_shutdown_func((*module)->type, (*module)->module_number);
        }
    }
    zend_end_try();
}

static int end_module_last(zval *entry) {
    const zend_module_entry *module = Z_PTR_P(entry);
    if (ends_last(module)) {
        module->post_deactivate_func();
    }
    return ZEND_HASH_APPLY_KEEP;
}

static void end_modules_last(void) {
    if (!are_listed()) {
        zend_hash_apply(&module_registry, end_module_last);
        return;
    }
    for (zend_module_entry **module = ending_last; *module; module++) {
        (*module)->post_deactivate_func();
    }
}

static bool has_own_output_handler(void) {
    php_output_handler **handler = zend_stack_base(&OG(handlers));
    for (int i = 0; i < zend_stack_count(&OG(handlers)); i++) {
        if (handler[i]->flags & PHP_OUTPUT_HANDLER_USER) {
            return true;
        }
    }
    return false;
}

/* Returns true if closing the resource may run code of the application: an open resource other
 * than a plain stream, a stream of the application's own class, or a stream with filters, which
 * may be its own. */
static bool closes_with_code(const zend_resource *resource) {
    if (resource->type == php_le_stream_context() || resource->type < 0) {
        return false;
    }
    const php_stream *stream = resource->ptr;
    return resource->type != php_file_le_stream() || stream->readfilters.head ||
           stream->writefilters.head || php_stream_is(stream, PHP_STREAM_IS_USERSPACE) ||
           php_stream_is(stream, PHP_STREAM_IS_USERSPACE_DIR);
}

static bool resources_close_with_code(void) {
    const HashTable *list = &EG(regular_list);
    for (uint32_t i = list->nNumUsed; i-- > 0;) {
        const zval *zv = ZEND_HASH_ELEMENT(list, i);
        if (Z_TYPE_P(zv) != IS_RESOURCE) {
            continue;
        }
        if ((zend_ulong)Z_RES_HANDLE_P(zv) < first_resource) {
            return false;
        }
        if (closes_with_code(Z_RES_P(zv))) {
            return true;
        }
    }
    return false;
}

/* Returns true if no code of the application runs after the destructors: no callbacks of the
 * output and of headers, no session to be written, no streams of its own classes. */
static bool no_code_follows(void) {
    return samovar_persistent && !CG(unclean_shutdown) && !EG(exception) &&
           Z_ISUNDEF(SG(callback_func)) &&
           !(&ps_globals && PS(session_status) == php_session_active) &&
           !resources_close_with_code() && !has_own_output_handler();
}

bool samovar_is_skippable(void) {
    return no_code_follows() && !BG(user_shutdown_function_names) &&
           samovar_objects_are_skippable();
}

/* PHP destructs the values of the global scope, each object with everything that only it holds,
 * and then the rest. That writes to every object, and frees memory of the boot. The rollback
 * would have to copy all of it back. */
static void destruct(void) {
    if (!no_code_follows() || !samovar_objects_are_skippable()) {
        zend_call_destructors();
    }
}

/* php_request_shutdown() (php-src main/main.c) without the steps that only free memory. */
static void end_like_php(void) {
    EG(flags) |= EG_FLAGS_IN_SHUTDOWN;
    EG(current_execute_data) = NULL;
    samovar_forget_out_of_memory();
    zend_try {
        php_call_shutdown_functions();
    }
    zend_end_try();
    if (samovar_reports() && samovar_persistent) {
        samovar_report_request(&(heap_walk_waiting){NULL, NULL});
    }
    zend_try {
        destruct();
    }
    zend_end_try();
    zend_try {
        php_output_end_all();
    }
    zend_end_try();
    end_modules();
    leave_output_handlers();
    zend_try {
        php_output_deactivate();
    }
    zend_end_try();
    EG(flags) |= EG_FLAGS_IN_RESOURCE_SHUTDOWN;
    zend_try {
        close_resources();
    }
    zend_end_try();
    zend_try {
        free_objects();
    }
    zend_end_try();
    zend_try {
        samovar_connections_end_transactions();
        samovar_connections_settle();
    }
    zend_end_try();
    zend_try {
        end_modules_last();
    }
    zend_end_try();
    if (CG(unclean_shutdown)) {
        samovar_opcache_unlock();
    }
    zend_try {
        sapi_deactivate();
    }
    zend_end_try();
}

_Noreturn void samovar_end_below(void) {
    samovar_warm_up_report();
    zend_try {
        samovar_tasks_end();
    }
    zend_end_try();
    end_like_php();
    if (!samovar_persistent) {
        _exit(EG(exit_status)); /* A warm-up request, or a process that a request has forked. */
    }
    const size_t peak = zend_memory_peak_usage(0);
    samovar_rollback_state()->unclean = CG(unclean_shutdown);
    samovar_loads_close(samovar_loads_state(), LOADS_TELL);
    samovar_current = NULL;
    samovar_finish(peak, 0);
    samovar_loads_tell(samovar_loads_state());
    samovar_roll_back();
}
