/* opcache's current time, its lock, and its figures.
 *
 * opcache takes its time when PHP's request begins, which for a booted
 * application is the boot. Without an update, files that change later would never be checked
 * again, and files newer than the boot would never be cached. */
#define _GNU_SOURCE
#include "sapi/opcache.h"
#include "boundary.h"
#include <php.h>
#include <SAPI.h>
#include <php_ini.h>
#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

enum { GLOBALS_BYTES = 1024 }; /* of accel_globals that are searched */

static time_t *request_time;
/* File with a lock on its first byte while a process stores a script
 * (ext/opcache/zend_shared_alloc.c); -1: there is none. */
static int lock_file = -1;

static bool is_lock_file(const char *number) {
    char path[64], name[64];
    snprintf(path, sizeof path, "/proc/self/fd/%.16s", number);
    const ssize_t n = readlink(path, name, sizeof name - 1);
    name[n > 0 ? n : 0] = 0;
    return strncmp(name, "/memfd:opcache_lock", 19) == 0 || strstr(name, "/.ZendSem.");
}

static void find_lock_file(void) {
    DIR *folder = opendir("/proc/self/fd");
    lock_file = -1;
    for (const struct dirent *e; folder && lock_file < 0 && (e = readdir(folder));) {
        lock_file = is_lock_file(e->d_name) ? atoi(e->d_name) : -1;
    }
    if (folder) {
        closedir(folder);
    }
}

/* Releases the lock. The rollback forgets that the process holds it, and others would wait
 * forever. */
void samovar_opcache_unlock(void) {
    const struct flock first_byte = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_len = 1};
    if (lock_file >= 0) {
        fcntl(lock_file, F_SETLK, &first_byte);
    }
}

/* Finds the field that holds this request's time. The address of opcache's globals is the one
 * that its settings write to (ext/opcache/zend_accelerator_module.c). */
void samovar_opcache_find(void) {
    const zend_ini_entry *entry =
        zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("opcache.validate_timestamps"));
    const time_t now = (time_t)SG(global_request_time);
    request_time = NULL;
    find_lock_file();
    if (!entry || !entry->mh_arg2 || now == 0) {
        return;
    }
    time_t *words = entry->mh_arg2;
    for (size_t i = 0; i < GLOBALS_BYTES / sizeof *words; i++) {
        if (words[i] == now && request_time) {
            request_time = NULL; /* Two matches: neither is certain. */
            return;
        }
        if (words[i] == now) {
            request_time = &words[i];
        }
    }
}

/* ---- figures ------------------------------------------------------------------------------- */

static uint64_t number(zval *in, const char *name) {
    const zval *found =
        Z_TYPE_P(in) == IS_ARRAY ? zend_hash_str_find(Z_ARRVAL_P(in), name, strlen(name)) : NULL;
    const bool is_count = found && Z_TYPE_P(found) == IS_LONG && Z_LVAL_P(found) > 0;
    return is_count ? (uint64_t)Z_LVAL_P(found) : found && Z_TYPE_P(found) == IS_TRUE;
}

static zval *group(zval *in, const char *name) {
    zval *found = zend_hash_str_find(Z_ARRVAL_P(in), name, strlen(name));
    return found ? found : in;
}

/* Calls opcache_get_status(false) as the engine would, but without a running request, which
 * zend_call_function() requires. The frame is on this function's stack. */
static void call_status(zend_function *function, zval *result) {
    union {
        zend_execute_data call;
        zval room[ZEND_CALL_FRAME_SLOT + 1];
    } frame;
    memset(&frame, 0, sizeof frame);
    frame.call.func = function;
    frame.call.prev_execute_data = EG(current_execute_data);
    ZEND_CALL_INFO(&frame.call) = ZEND_CALL_TOP_FUNCTION;
    ZEND_CALL_NUM_ARGS(&frame.call) = 1;
    ZVAL_FALSE(ZEND_CALL_ARG(&frame.call, 1));
    EG(current_execute_data) = &frame.call;
    function->internal_function.handler(&frame.call, result);
    EG(current_execute_data) = frame.call.prev_execute_data;
}

bool samovar_opcache_look(samovar_opcache_figures *to) {
    zend_function *function =
        zend_hash_str_find_ptr(CG(function_table), ZEND_STRL("opcache_get_status"));
    if (!function || function->type != ZEND_INTERNAL_FUNCTION) {
        return false;
    }
    /* opcache compares this path with opcache.restrict_api, which is about scripts. */
    char *const restriction = zend_ini_string(ZEND_STRL("opcache.restrict_api"), 0);
    char *const path = SG(request_info).path_translated;
    SG(request_info).path_translated = restriction;
    zval result;
    ZVAL_NULL(&result);
    zend_try {
        call_status(function, &result);
    }
    zend_catch {
        EG(current_execute_data) = NULL;
        ZVAL_NULL(&result);
    }
    zend_end_try();
    SG(request_info).path_translated = path;
    if (Z_TYPE(result) != IS_ARRAY) {
        zval_ptr_dtor(&result);
        return false;
    }
    zval *memory = group(&result, "memory_usage");
    zval *strings = group(&result, "interned_strings_usage");
    zval *statistics = group(&result, "opcache_statistics");
    *to = (samovar_opcache_figures){
        .used_bytes = number(memory, "used_memory"),
        .free_bytes = number(memory, "free_memory"),
        .wasted_bytes = number(memory, "wasted_memory"),
        .strings = number(strings, "number_of_strings"),
        .strings_used_bytes = number(strings, "used_memory"),
        .strings_free_bytes = number(strings, "free_memory"),
        .scripts = number(statistics, "num_cached_scripts"),
        .keys = number(statistics, "num_cached_keys"),
        .keys_max = number(statistics, "max_cached_keys"),
        .hits = number(statistics, "hits"),
        .misses = number(statistics, "misses"),
        .restarts_memory = number(statistics, "oom_restarts"),
        .restarts_keys = number(statistics, "hash_restarts"),
        .restarts_manual = number(statistics, "manual_restarts"),
        .is_full = number(&result, "cache_full"),
    };
    zval_ptr_dtor(&result);
    /* Without opcache's shared memory there is only the file cache. */
    return to->used_bytes + to->free_bytes > 0;
}

void samovar_opcache_tick(void) {
    if (request_time) {
        *request_time = time(NULL);
    }
}
