/* run: the script model, in which every request is one run of a script; and the boot of an
 * application, which is a run without a request.
 *
 * Behaviour follows php-src sapi/fpm/fpm/fpm_main.c, because applications expect its responses. */
#include "model/script.h"
#include "compat.h"
#include "insight/request_accounting.h"
#include "loads/loads.h"
#include "model/checkpoint.h"
#include "model/end_below.h"
#include "model/inclusion.h"
#include "model/overrun.h"
#include "model/resident.h"
#include "model/resume.h"
#include "outside/boot.h"
#include "rollback/taint.h"
#include "sapi/sapi.h"
#include "tasks/task.h"
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

static void execute(const char *script) {
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
static void execute_boot(const char *script) {
    const bool returns = VCWD_GETCWD(former, MAXPATHLEN - 1) != NULL;
    VCWD_CHDIR_FILE(script);
    SG(options) |= SAPI_OPTION_NO_CHDIR;
    execute(script);
    SG(options) &= ~SAPI_OPTION_NO_CHDIR;
    const bool is_over = samovar_below_checkpoint && !samovar_is_stale() && samovar_is_skippable();
    if (returns && is_over) {
        still_away = true;
    } else if (returns) {
        go_back();
    }
}

/* Runs `script` as one PHP request. Finishes a client request that is still open at its end. */
static int run(const char *script, bool is_boot) {
    samovar_responded = false;
    samovar_outcome = SAMOVAR_RUN_DONE;
    const zend_long auto_start = hold_back_session(is_boot);
    if (php_request_startup() == SUCCESS) {
        release_session(auto_start);
        if (is_boot) {
            /* No headers instead of sent headers, because session settings are refused after
             * headers were sent. */
            SG(request_info).no_headers = 1;
            samovar_watch_inclusions();
            execute_boot(script);
        } else {
            samovar_request_accounting_booted();
            execute(script);
        }
    }
    zend_try {
        samovar_tasks_end();
    }
    zend_end_try();
    samovar_end_stale();
    if (samovar_below_checkpoint) {
        samovar_end_below();
    }
    if (samovar_serving) {
        samovar_script_ended(); /* The script has its own loop, as FrankenPHP's workers have. */
    }
    samovar_unwatch_inclusions();
    php_request_shutdown(NULL);
    samovar_log_early_output();
    if (samovar_current) {
        samovar_current = NULL;
        samovar_finish(samovar_peak_bytes);
    }
    samovar_forget_request_info();
    return samovar_outcome;
}

int samovar_php_run(const samovar_head *head) {
    samovar_taints_begin();
    samovar_current = head;
    samovar_fill_request_info(head);
    samovar_overrun_begin();
    return run(samovar_text(head, head->script_filename), false);
}

int samovar_php_boot(int place) {
    samovar_is_ours();
    samovar_place = place;
    samovar_current = NULL;
    samovar_forget_request_info();
    SG(sapi_headers).http_response_code = 200;
    SG(request_info).path_translated = (char *)samovar_settings->app_script;
    samovar_boot_begin();
    samovar_loads_boot();
    const int outcome = run(samovar_settings->app_script, true);
    samovar_loads_booted(); /* It has reached no checkpoint. */
    samovar_place = SAMOVAR_RUNS_SCRIPTS;
    return outcome;
}
