/* The setting checkpoint_after: takes a checkpoint right after a file was first included, for
 * applications whose code must not be changed.
 *
 * Active during a boot only, because the hook slows calls down. It is removed before requests
 * run. */
#include "model/inclusion.h"
#include "model/checkpoint.h"
#include "sapi/sapi.h"
#include <limits.h>
#include <stdlib.h>

static char wanted[PATH_MAX];
static void (*execute_unwatched)(zend_execute_data *frame);

static bool is_wanted(const zend_execute_data *frame) {
    const zend_function *code = frame->func;
    return wanted[0] && code && code->type == ZEND_USER_FUNCTION &&
           (ZEND_CALL_INFO(frame) & ZEND_CALL_CODE) && code->op_array.filename &&
           strcmp(ZSTR_VAL(code->op_array.filename), wanted) == 0;
}

static void execute_watched(zend_execute_data *frame) {
    const bool found = is_wanted(frame);
    execute_unwatched(frame);
    if (found && !EG(exception)) {
        wanted[0] = 0;
        zend_execute_ex = execute_unwatched;
        samovar_checkpoint();
    }
}

void samovar_watch_inclusions(void) {
    if (!samovar_settings->checkpoint_after[0]) {
        return;
    }
    if (!realpath(samovar_settings->checkpoint_after, wanted)) {
        samovar_note("PHP Samovar: checkpoint_after `%s` is not a readable file",
                     samovar_settings->checkpoint_after);
        wanted[0] = 0;
        return;
    }
    execute_unwatched = zend_execute_ex;
    zend_execute_ex = execute_watched;
}

void samovar_unwatch_inclusions(void) {
    if (wanted[0]) {
        samovar_note("PHP Samovar: the front controller ended without including `%s`: there is no "
                     "checkpoint",
                     wanted);
        wanted[0] = 0;
        zend_execute_ex = execute_unwatched;
    }
}
