/* closelog: PHP calls it at the end of each request, even without an open log. The call is
 * skipped where a rollback follows: libc's function would close a descriptor of the image, or
 * write two pages for nothing. */
#define _GNU_SOURCE
#include "interpose/original.h"
#include "rollback/process.h"
#include <syslog.h>

void closelog(void) {
    ORIGINAL(closelog)
    if (!samovar_persistent || !samovar_process_state()->modules_end) {
        original();
    }
}
