/* closelog: PHP calls it at each request's end, whether there is a log or not. Where a rollback
 * follows, it would close a descriptor of the image, or write two pages for nothing. */
#define _GNU_SOURCE
#include "interpose/original.h"
#include "persistent.h"
#include <syslog.h>

void closelog(void) {
    ORIGINAL(closelog)
    if (!samovar_persistent || !samovar_persistent->process.modules_end) {
        original();
    }
}
