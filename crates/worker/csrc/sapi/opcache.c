/* opcache's current time. opcache takes it when PHP's request begins, which for a booted
 * application is the boot. Without an update, files that change later would never be checked
 * again, and files newer than the boot would never be cached. */
#define _GNU_SOURCE
#include "sapi/opcache.h"
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

void samovar_opcache_tick(void) {
    if (request_time) {
        *request_time = time(NULL);
    }
}
