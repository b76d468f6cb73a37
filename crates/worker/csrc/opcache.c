/* opcache's idea of what time it is. It is taken when PHP's request begins, which for a booted
 * application is the boot: files that change later would never be looked at again, and files that
 * are younger than the boot would never be cached. */
#include "samovar.h"
#include <php_ini.h>
#include <time.h>

enum { GLOBALS_BYTES = 1024 }; /* of accel_globals that are searched */

static time_t *request_time;

/* The address of opcache's globals is that which its settings write to (ext/opcache/
 * zend_accelerator_module.c); the field is the one that holds this request's time. */
void samovar_opcache_find(void) {
    const zend_ini_entry *entry =
        zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("opcache.validate_timestamps"));
    const time_t now = (time_t)SG(global_request_time);
    request_time = NULL;
    if (!entry || !entry->mh_arg2 || now == 0) {
        return;
    }
    time_t *words = entry->mh_arg2;
    for (size_t i = 0; i < GLOBALS_BYTES / sizeof *words; i++) {
        if (words[i] == now && request_time) {
            request_time = NULL; /* Two of them: nothing is certain. */
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
