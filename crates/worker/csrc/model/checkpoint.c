/* Samovar\checkpoint(): the checkpoint model.
 *
 * The front controller is booted down to the checkpoint in its own process, where the image is
 * taken and the workers are forked. In a worker, checkpoint() returns once for each request. At
 * the end of the script, samovar_end_below() ends the request as php-fpm would, and the process
 * returns to the image. */
#include "model/checkpoint.h"
#include "heap_walk/report.h"
#include "heap_walk/watch.h"
#include "leave.h"
#include "insight/request_accounting.h"
#include "loads/loads.h"
#include "memory/arena.h"
#include "memory/heap.h"
#include "memory/hot.h"
#include "memory/image.h"
#include "memory/local.h"
#include "memory/persistent.h"
#include "model/activate.h"
#include "model/collect.h"
#include "model/end_below.h"
#include "model/kind.h"
#include "model/resume.h"
#include "model/warmup.h"
#include "outside/connections.h"
#include "outside/paths.h"
#include "outside/preflight.h"
#include "outside/put_back.h"
#include "outside/request_reads.h"
#include "rollback/reseed.h"
#include "rollback/rollback.h"
#include "sapi/boot_globals.h"
#include "sapi/sapi.h"
#include "tasks/task.h"
#include <zend_exceptions.h>
#include <ext/standard/php_filestat.h>
#include <errno.h>
#include <locale.h>
#include <malloc.h>
#include <unistd.h>
#include "functions/arginfo/prototypes.h"

enum { HEAP_SLACK_BYTES = 8 << 20 }; /* so that requests need not extend malloc's heap */

/* ---- before the image ---------------------------------------------------------------------- */

/* Compiled scripts are not read again, and the end of the first request would close their files
 * under the image. */
static void close_scripts(void) {
    for (zend_llist_element *e = CG(open_files).head; e; e = e->next) {
        zend_file_handle *file = (zend_file_handle *)e->data;
        if (file->type == ZEND_HANDLE_STREAM && file->handle.stream.closer &&
            file->handle.stream.handle) {
            file->handle.stream.closer(file->handle.stream.handle);
            file->handle.stream.handle = NULL;
        }
    }
}

/* Loads a locale that many requests set for programs that they start. libc would map its files
 * internally, where only a check of all mappings finds them. */
static void load_usual_locale(void) {
    if (newlocale(LC_ALL_MASK, "C.UTF-8", NULL) == NULL) {
        errno = 0; /* The system does not have it. */
    }
}

static void tidy(void) {
    gc_collect_cycles();
    samovar_collect_begin();
    load_usual_locale();
    samovar_reseed_warm_up();
    samovar_locals_settle();
    php_clear_stat_cache(0, NULL, 0);
    samovar_paths_settle(zend_ini_long("realpath_cache_ttl", sizeof("realpath_cache_ttl") - 1, 0) >
                         0);
    void *volatile slack = malloc(HEAP_SLACK_BYTES);
    free(slack);
    samovar_heap_close();
}

/* Checks whether the resources that the boot has left open permit an image here. Does not return
 * in an image process that cannot continue. */
static int preflight(void) {
    if (samovar_place == SAMOVAR_REHEARSES) {
        samovar_loads_booted();
        _exit(0);
    }
    const uint32_t look = samovar_load_begin(LOAD_LOOK, "", 0);
    close_scripts();
    samovar_connections_remember(samovar_settings->checkpoint_connections);
    const int fall = samovar_preflight();
    samovar_load_end(look);
    if (fall == FALL_SCRIPT) {
        samovar_loads_booted();
        samovar_image_is("script", 0, 0);
    } else if (fall == FALL_WORKER && samovar_place == SAMOVAR_BOOTS_IMAGE) {
        samovar_loads_booted();
        samovar_image_is("worker", 0, 0);
    }
    return fall;
}

static bool take_image(void) {
    samovar_loads_booted();
    tidy();
    samovar_end_below_prepare();
    const char *problem = samovar_image_take();
    if (problem) {
        samovar_finding("image", "script", problem, "", "each request runs the whole script");
        samovar_image_is("script", 0, 0);
        return false;
    }
    samovar_image_is("shared", samovar_image->held_bytes, samovar_image->region_count);
    load_table *table = samovar_loads_room();
    if (!samovar_rollback_here()) {
        samovar_note("PHP Samovar: this worker cannot roll back (check that /proc/self/pagemap "
                     "and statm are readable)");
        samovar_leave_for(LEAVE_FATAL);
    }
    samovar_loads_begin(samovar_loads_state(), table);
    return true;
}

bool samovar_take_image(void) {
    return preflight() != FALL_SCRIPT && take_image();
}

/* Samovar\\serve() without rollback. Nothing is rolled back, so forks may share the booted
 * application, unless it holds something that two processes cannot both use. */
void samovar_share_boot(void) {
    samovar_loads_booted();
    samovar_paths_settle(false);
    const int fall = samovar_preflight();
    samovar_image_is(fall == FALL_SHARED ? "resident" : "worker", 0, 0);
    samovar_reseed_prepare();
    samovar_reseed();
}

/* ---- checkpoint ---------------------------------------------------------------------------- */

static void wait_for_request(void) {
    samovar_current = samovar_take();
    if (!samovar_current) {
        _exit(0); /* The server stops, or a connection has died (boundary.rs has reported it). */
    }
    hot_state *hot = samovar_hot_state();
    if (samovar_hot_wants_kind(hot)) {
        samovar_hot_expect(hot, samovar_request_kind(samovar_current));
    }
}

/* Begins each request below the checkpoint. */
static void begin_below(void) {
    if (samovar_persistent) {
        samovar_loads_open(samovar_loads_state(), samovar_rollback_state()->count);
    }
    samovar_resume_begin();
    samovar_activate_below();
    samovar_resume();
}

/* Not for a script other than the front controller, because no boot would reach it. Nor does a
 * worker leave that runs such scripts to measure their cost, while others are booted ahead. */
void samovar_meets_boot(void) {
    if (samovar_current && (samovar_current->flags & SAMOVAR_APP)) {
        samovar_met_checkpoint(samovar_current->flags & SAMOVAR_WHOLE);
    }
}

void samovar_checkpoint(void) {
    if (samovar_below_checkpoint || samovar_serving || samovar_task_current()) {
        return;
    }
    if (samovar_place == SAMOVAR_RUNS_CONSOLE) {
        return;
    }
    if (samovar_place == SAMOVAR_RUNS_SCRIPTS) {
        samovar_request_accounting_booted();
        samovar_meets_boot();
        return;
    }
    samovar_tasks_end(); /* With checkpoint_after: a waiting task cannot be part of an image. */
    samovar_request_reads_end();
    samovar_activate_startup();
    samovar_boot_globals_save();
    samovar_below_checkpoint = true;
    const int fall = preflight();
    if (fall == FALL_SHARED && samovar_warm_up()) {
        begin_below();
        return;
    }
    if (fall == FALL_SCRIPT || !take_image()) {
        /* Only in a worker that boots the application itself: the image process has ended. */
        samovar_leave_for(LEAVE_FATAL);
    }
    samovar_resident(true);
    if (samovar_reports() && samovar_rollback_state()->count == 0) {
        samovar_report_begin(&(heap_walk_waiting){NULL, NULL});
    }
    wait_for_request();
    samovar_responded = false;
    begin_below();
}

/* The callable is called even where nothing is booted ahead, because the code below relies on
 * it. */
ZEND_FUNCTION(Samovar_checkpoint) {
    zend_fcall_info info = {0};
    zend_fcall_info_cache cache = {0};
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_FUNC_OR_NULL(info, cache)
    ZEND_PARSE_PARAMETERS_END();
    if (samovar_tasks_in_flight()) {
        zend_throw_error(NULL, "Samovar\\checkpoint() with tasks in flight: await them first");
        RETURN_THROWS();
    }
    const bool takes_image = samovar_is_boot() && !samovar_below_checkpoint && !samovar_serving;
    if (takes_image && ZEND_FCI_INITIALIZED(info)) {
        samovar_resume_with(&info, &cache);
    }
    samovar_checkpoint();
    if (!takes_image && ZEND_FCI_INITIALIZED(info)) {
        zval returned;
        ZVAL_UNDEF(&returned);
        info.retval = &returned;
        zend_call_function(&info, &cache);
        zval_ptr_dtor(&returned);
    }
}

/* Called before each check for a request. A second after the last check means that there was
 * none. */
int samovar_may_take(void) {
    if (!samovar_persistent) {
        return !samovar_watch_is_due();
    }
    samovar_arena_idle(samovar_arena_state());
    return samovar_put_back_are_quiet(samovar_kept_state());
}
