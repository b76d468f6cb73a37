/* run: one script as one PHP request. In the script model every request is such a run; the boot
 * of an application is one without a client.
 *
 * Behaviour follows php-src sapi/fpm/fpm/fpm_main.c, because applications expect its responses. */
#include "model/script.h"
#include "compat.h"
#include "model/end_below.h"
#include "model/resume.h"
#include "sapi/sapi.h"
#include <zend_observer.h>

SAMOVAR_OF_REQUEST int samovar_outcome;
SAMOVAR_OF_REQUEST size_t samovar_peak_bytes;

/* With session.auto_start a boot would begin a session that belongs to no client. */
static zend_long hold_back_session(bool is_boot) {
    if (!is_boot || !&ps_globals) {
        return -1;
    }
    const zend_long auto_start = PS(auto_start);
    PS(auto_start) = 0;
    return auto_start;
}

static void release_session(zend_long auto_start) {
    if (auto_start >= 0) {
        PS(auto_start) = auto_start;
    }
}

bool samovar_script_begin(bool is_boot) {
    const zend_long auto_start = hold_back_session(is_boot);
    if (php_request_startup() != SUCCESS) {
        return false;
    }
    release_session(auto_start);
    if (is_boot) {
        /* No headers instead of sent headers, because session settings are refused after headers
         * were sent. */
        SG(request_info).no_headers = 1;
    }
    return true;
}

void samovar_script_run(const char *script) {
    zend_file_handle file;
    zend_first_try {
        zend_stream_init_filename(&file, script);
        file.primary_script = true;
        php_execute_script(&file);
        zend_destroy_file_handle(&file);
    }
    zend_end_try();
}

/* Folder from which the boot's script was run. Not on the stack, because a rollback copies all
 * of the stack. */
static char former[MAXPATHLEN];
/* True if the end of the script has not returned to that folder. */
SAMOVAR_OF_REQUEST static bool still_away;

static void go_back(void) {
    still_away = false;
    if (VCWD_CHDIR(former) != 0) {
        samovar_note("PHP Samovar: cannot return to the folder %s at the script's end", former);
    }
}

/* Called before the application's handler runs, or a log is written whose path is relative to
 * this folder. */
static void on_error(int type, zend_string *file, uint32_t line, zend_string *message) {
    (void)type, (void)file, (void)line, (void)message;
    if (still_away) {
        go_back();
    }
}

void samovar_script_startup(void) {
    zend_observer_error_register(on_error);
}

/* php_execute_script() runs a script in its own folder and returns to the former one at its end.
 * Below a checkpoint the rollback returns to the script's folder. So the process goes back only
 * if code follows that could see it. */
void samovar_script_boot(const char *script) {
    const bool returns = VCWD_GETCWD(former, MAXPATHLEN - 1) != NULL;
    VCWD_CHDIR_FILE(script);
    SG(options) |= SAPI_OPTION_NO_CHDIR;
    samovar_script_run(script);
    SG(options) &= ~SAPI_OPTION_NO_CHDIR;
    const bool is_over = samovar_below_checkpoint && !samovar_is_stale() && samovar_is_skippable();
    if (returns && is_over) {
        still_away = true;
    } else if (returns) {
        go_back();
    }
}
