/* Ends a worker that cannot continue: records the reason in the ring, then ends the process
 * without any cleanup. */
#include "leave.h"
#include "boundary.h"
#include <unistd.h>

_Noreturn void samovar_leave_for(leave_reason reason) {
    samovar_leave((int)reason);
    _exit(SAMOVAR_EXIT_REPLACE);
}

void samovar_must(bool done, leave_reason reason) {
    if (!done) {
        samovar_leave_for(reason);
    }
}
