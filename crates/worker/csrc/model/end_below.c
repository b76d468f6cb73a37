/* The end of a request below a checkpoint: what php-fpm would do is done, as far as others can see
 * it (shutdown functions, destructors, output, streams, transactions); memory is left as it is,
 * because the rollback brings it all back. */
#include "model/end_below.h"
#include "boundary.h"
#include "census/report.h"
#include "compat.h"
#include "model/warmup.h"
#include "outside/connections.h"
#include "persistent.h"
#include "sapi/opcache.h"
#include "sapi/sapi.h"
#include "tasks/task.h"
#include <zend_closures.h>
#include <zend_fibers.h>
#include <zend_generators.h>
#include <ext/standard/basic_functions.h>
#include <unistd.h>

enum { OBJECTS_LOOKED_AT = 64 }; /* More than so many are taken to have ends that are seen. */

/* What there was when the image was taken: the rest is the request's to close. */
static zend_ulong first_resource;
static zend_object **boot_objects;
static uint32_t boot_object_count;

/* Modules whose ends are called, each list up to a NULL. NULL: there is no image yet. */
static zend_module_entry **ending, **ending_last;

/* ---- before the image ---------------------------------------------------------------------- */

/* The iterators of SPL close their files when they are destructed, not when they are freed. What
 * runs PHP code then (generators, fibers: their `finally`) does not count. */
static bool closes_when_destructed(const zend_object *object) {
    return !object->ce->destructor && object->handlers->dtor_obj != zend_objects_destroy_object &&
           object->ce != zend_ce_generator && object->ce != zend_ce_fiber;
}

/* What holds more than memory, a connection for one, must outlive the end of a request, which
 * empties the global scope: a reference more keeps it. Destructors of classes run all the same. */
static void hold_what_is_open(void) {
    for (uint32_t i = 1; i < EG(objects_store).top; i++) {
        zend_object *object = EG(objects_store).object_buckets[i];
        if (!IS_OBJ_VALID(object)) {
            continue;
        }
        if (object->handlers->free_obj != zend_object_std_dtor) {
            GC_ADDREF(object);
        }
        if (closes_when_destructed(object)) {
            GC_ADD_FLAGS(object, IS_OBJ_DESTRUCTOR_CALLED);
        }
    }
    zval *resource;
    ZEND_HASH_FOREACH_VAL(&EG(regular_list), resource) {
        Z_ADDREF_P(resource);
    }
    ZEND_HASH_FOREACH_END();
}

/* Their ends free memory and forget what the request has set in it, and nobody sees it: the
 * rollback does the same for less. */
static bool ends_in_memory(const zend_module_entry *module) {
    const char *const names[] = {"date", "filter", "intl", "libxml", "mbstring", "pcre", "SPL"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(module->name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* zend_post_deactivate_modules() would also have opcache release the lock by which it knows that
 * the image points into its memory. */
static bool ends_last(const zend_module_entry *module) {
    return module->post_deactivate_func && strcmp(module->name, "Zend OPcache") != 0 &&
           !ends_in_memory(module);
}

/* In the engine's order: the last one first, then the last ends in theirs. */
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
    hold_what_is_open();
    samovar_connections_remember();
    const zend_objects_store *store = &EG(objects_store);
    boot_object_count = store->top;
    boot_objects = pemalloc(sizeof *boot_objects * (store->top + 1), 1);
    memcpy(boot_objects, store->object_buckets, sizeof *boot_objects * store->top);
    first_resource = (zend_ulong)EG(regular_list).nNextFreeElement;
}

static bool is_of_boot(uint32_t handle, const zend_object *object) {
    return handle < boot_object_count && boot_objects[handle] == object;
}

/* ---- the end ------------------------------------------------------------------------------- */

/* Streams flush, temporary files go, connections say goodbye: what the request has opened, the
 * youngest first, as zend_close_rsrc_list() does. */
static void close_resources(void) {
    HashTable *list = &EG(regular_list);
    for (uint32_t i = list->nNumUsed; i-- > 0;) {
        zval *zv = list->nNumUsed > i ? ZEND_HASH_ELEMENT(list, i) : NULL;
        if (zv && Z_TYPE_P(zv) == IS_RESOURCE && (zend_ulong)Z_RES_HANDLE_P(zv) >= first_resource) {
            zend_list_close(Z_RES_P(zv));
        }
    }
}

/* As zend_objects_store_free_object_storage(): an archive is written, a transaction rolled back. */
static void free_objects(void) {
    zend_objects_store *store = &EG(objects_store);
    for (uint32_t i = store->top; i-- > 1;) {
        zend_object *object = store->object_buckets[i];
        if (IS_OBJ_VALID(object) && !is_of_boot(i, object) &&
            !(OBJ_FLAGS(object) & IS_OBJ_FREE_CALLED) &&
            object->handlers->free_obj != zend_object_std_dtor) {
            GC_ADD_FLAGS(object, IS_OBJ_FREE_CALLED);
            GC_ADDREF(object);
            object->handlers->free_obj(object);
        }
    }
}

/* Those that dl() has loaded in this request are on no list. */
static bool are_listed(void) {
    return ending && !EG(full_tables_cleanup);
}

/* As zend_deactivate_modules(). */
static void end_modules(void) {
    if (!are_listed()) {
        zend_deactivate_modules();
        return;
    }
    EG(current_execute_data) = NULL;
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

/* php_request_shutdown() (php-src main/main.c) without what only frees memory. */
static void end_like_php(void) {
    EG(flags) |= EG_FLAGS_IN_SHUTDOWN;
    EG(current_execute_data) = NULL;
    samovar_forget_out_of_memory();
    zend_try {
        php_call_shutdown_functions();
    }
    zend_end_try();
    if (samovar_reports() && samovar_persistent) {
        samovar_report_request(&(census_waiting){NULL, NULL});
    }
    zend_try {
        zend_call_destructors();
    }
    zend_end_try();
    zend_try {
        php_output_end_all();
    }
    zend_end_try();
    end_modules();
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

/* Objects whose end nobody sees: it runs no code and gives nothing back but memory. */
static bool end_unseen(const zend_object *object) {
    const bool std = object->handlers->dtor_obj == zend_objects_destroy_object &&
                     object->handlers->free_obj == zend_object_std_dtor;
    return object->ce == zend_ce_closure || (std && !object->ce->destructor);
}

static bool all_objects_end_unseen(void) {
    const zend_objects_store *store = &EG(objects_store);
    if (store->top > OBJECTS_LOOKED_AT) {
        return false;
    }
    for (uint32_t i = 1; i < store->top; i++) {
        const zend_object *object = store->object_buckets[i];
        if (IS_OBJ_VALID(object) && !end_unseen(object)) {
            return false;
        }
    }
    return true;
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

bool samovar_ends_unseen(void) {
    return samovar_persistent && !CG(unclean_shutdown) && !EG(exception) &&
           !BG(user_shutdown_function_names) && Z_ISUNDEF(EG(user_error_handler)) &&
           Z_ISUNDEF(SG(callback_func)) &&
           !(&ps_globals && PS(session_status) == php_session_active) &&
           (zend_ulong)EG(regular_list).nNextFreeElement == first_resource &&
           all_objects_end_unseen() && !has_own_output_handler();
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
    samovar_persistent->rollback.unclean = CG(unclean_shutdown);
    samovar_loads_close(&samovar_persistent->loads, LOADS_TELL);
    samovar_current = NULL;
    samovar_finish(peak);
    samovar_loads_tell(&samovar_persistent->loads);
    samovar_roll_back();
}
