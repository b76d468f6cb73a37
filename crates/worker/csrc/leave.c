/* The end of a worker that cannot go on: the ring is told why, then the process ends without any
 * cleaning up. */
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
