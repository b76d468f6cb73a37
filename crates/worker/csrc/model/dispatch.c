/* take → run: the model that a request or a boot takes, and the end of its script.
 *
 * The script of a request runs as a whole (script.c). A boot runs the front controller without a
 * request. Its code selects the model:
 * - Samovar\checkpoint(), or the file of the setting checkpoint_after: the checkpoint model;
 * - Samovar\serve() or frankenphp_handle_request(): the resident model;
 * - none of them: its requests run as whole scripts.
 *
 * This is the only file of model/ that knows all models. It implements samovar_php_run() and
 * samovar_php_boot() of boundary.h, and has no header: no other file of this folder calls it. */
#include "boundary.h"
#include "insight/request_accounting.h"
#include "leave.h"
#include "loads/loads.h"
#include "model/end_below.h"
#include "model/inclusion.h"
#include "model/overrun.h"
#include "model/resident.h"
#include "model/resume.h"
#include "model/script.h"
#include "outside/boot.h"
#include "outside/request_reads.h"
#include "rollback/taint.h"
#include "sapi/sapi.h"
#include "tasks/task.h"

static void execute(const char *script, bool is_boot) {
    if (!samovar_script_begin(is_boot)) {
        return;
    }
    if (is_boot) {
        samovar_watch_inclusions();
        samovar_script_boot(script);
    } else {
        samovar_request_accounting_booted();
        samovar_script_run(script);
    }
}

/* If the image was stale: runs the request as a whole script, and leaves. */
static void start_over(void) {
    const samovar_head *head = samovar_end_stale();
    if (head) {
        samovar_php_run(head);
        samovar_leave_for(LEAVE_STALE);
    }
}

/* Runs `script` as one PHP request. Finishes a client request that is still open at its end. */
static int run(const char *script, bool is_boot) {
    samovar_responded = false;
    samovar_outcome = SAMOVAR_RUN_DONE;
    execute(script, is_boot);
    zend_try {
        samovar_tasks_end();
    }
    zend_end_try();
    start_over();
    if (samovar_below_checkpoint) {
        samovar_end_below();
    }
    if (samovar_serving) {
        samovar_script_ended(); /* The script has its own loop, as FrankenPHP's workers have. */
    }
    samovar_unwatch_inclusions();
    php_request_shutdown(NULL);
    samovar_log_early_output();
    samovar_loads_script_close(samovar_current);
    if (samovar_current) {
        samovar_current = NULL;
        samovar_finish(samovar_peak_bytes, 0);
    }
    samovar_loads_script_tell();
    samovar_forget_request_info();
    return samovar_outcome;
}

int samovar_php_run(const samovar_head *head) {
    samovar_taints_begin();
    samovar_current = head;
    samovar_fill_request_info(head);
    samovar_overrun_begin();
    samovar_loads_script_open();
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
    samovar_request_reads_begin(samovar_settings->boot_reads);
    samovar_loads_boot();
    const int outcome = run(samovar_settings->app_script, true);
    samovar_request_reads_end();
    samovar_loads_booted(); /* It has reached no checkpoint. */
    samovar_place = SAMOVAR_RUNS_SCRIPTS;
    return outcome;
}
