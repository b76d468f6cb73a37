/* run: ends a script whose time is over by the server's clock; and Samovar\extend_deadline().
 *
 * The front records in the slot that the time is over, and the supervisor sends a signal, which
 * only means "check the slot". A signal that comes too late finds the next request, whose time
 * is not over. The script ends with a fatal error between two opcodes, as with
 * max_execution_time, so that its shutdown functions run. A worker that does not get that far
 * (it waits in a library, or is stopped) is killed a moment later.
 *
 * The signal interrupts system calls: sleep() and flock() return, and the reaction of libraries
 * is unknown. So the worker leaves after that request.
 *
 * A script that continues after its client has disconnected (ignore_user_abort) has more time
 * then. The front is notified as soon as that is set. */
#include "model/overrun.h"
#include "boundary.h"
#include "compat.h"
#include "rollback/taint.h"
#include "sapi/run_state.h"
#include <signal.h>
#include "functions/arginfo/prototypes.h"

/* LOOK_SIGNAL of crates/supervisor/src/overrun_diagnosis.rs. Neither PHP nor a library known to
 * us uses it, and scripts cannot set a timer that sends it. */
enum { LOOK_SIGNAL = SIGVTALRM };

/* Maximum extension: a year. */
enum { EXTENSION_SECONDS_MAX = 366 * 24 * 3600 };

static volatile sig_atomic_t asked;
static void (*next_hook)(zend_execute_data *);

static void look(int signal_number) {
    (void)signal_number;
    asked = 1;
    zend_atomic_bool_store_ex(&EG(vm_interrupt), true);
}

static void end_if_over(void) {
    const char *setting = samovar_overrun();
    if (!setting) {
        return;
    }
    samovar_taint(LEAVE_OVERRUN);
    if (samovar_overrun_ended_script) {
        return;
    }
    samovar_overrun_ended_script = true;
    zend_error_noreturn(E_ERROR, "This request exceeded its time limit (%s)", setting);
}

/* Called by the engine between two opcodes. */
static void hook(zend_execute_data *frame) {
    if (asked) {
        asked = 0;
        end_if_over();
    }
    if (next_hook) {
        next_hook(frame);
    }
}

static ZEND_INI_MH((*set_ignore_user_abort));

static ZEND_INI_MH(tell_ignore_user_abort) {
    const int result = set_ignore_user_abort(entry, new_value, mh_arg1, mh_arg2, mh_arg3, stage);
    samovar_outlive_client(PG(ignore_user_abort));
    return result;
}

void samovar_overrun_begin(void) {
    samovar_overrun_ended_script = false;
    /* By default the front assumes that the script does not continue. */
    if (PG(ignore_user_abort)) {
        samovar_outlive_client(true);
    }
}

void samovar_overrun_startup(void) {
    zend_ini_entry *setting =
        zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("ignore_user_abort"));
    if (setting) {
        set_ignore_user_abort = setting->on_modify;
        setting->on_modify = tell_ignore_user_abort;
    }
    next_hook = zend_interrupt_function;
    zend_interrupt_function = hook;
    /* No SA_RESTART: an interrupted wait of the script is not worth continuing. */
    struct sigaction action = {.sa_handler = look};
    sigemptyset(&action.sa_mask);
    sigaction(LOOK_SIGNAL, &action, NULL);
}

ZEND_FUNCTION(Samovar_extend_deadline) {
    zend_long seconds;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_LONG(seconds)
    ZEND_PARSE_PARAMETERS_END();
    if (seconds < 1) {
        zend_argument_value_error(1, "must be greater than 0");
        RETURN_THROWS();
    }
    const zend_long asked_for = MIN(seconds, EXTENSION_SECONDS_MAX);
    /* Rounded, because a millisecond has passed since the call. */
    RETURN_LONG((zend_long)((samovar_extend((uint64_t)asked_for * 1000) + 500) / 1000));
}
