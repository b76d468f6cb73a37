/* Accounting of the current request, for its reader in the front: waits, timers, route, tags,
 * and the way it ended.
 *
 * This folder depends on the engine and the hook for blocking calls (interpose/), and not on
 * execution models. Its memory is shared memory of the worker's own, so no rollback has to copy
 * it. */
#ifndef SAMOVAR_INSIGHT_REQUEST_ACCOUNTING_H
#define SAMOVAR_INSIGHT_REQUEST_ACCOUNTING_H

#include "boundary.h"
#include "insight/accounting_record.h"
#include "insight/clock.h"
#include "insight/names.h"
#include "interpose/blocking.h"
#include <stdbool.h>
#include <stdint.h>

/* NULL if this process is not a worker, or no longer one. */
extern request_accounting_state *samovar_request_accounting;

/* Called in MINIT: installs the hook for exit(). */
void samovar_request_accounting_startup(void);
/* Returns the accounting of the current request. NULL: it has no reader. */
static inline request_accounting_state *samovar_request_accounting_now(void) {
    return samovar_request_accounting && samovar_request_accounting->is_open
               ? samovar_request_accounting
               : NULL;
}

/* Called when a whole script is ready to begin its work. The last call counts. */
void samovar_request_accounting_booted(void);
/* Sets the route that the application names. The last call counts. */
void samovar_request_accounting_route(const char *name, size_t len);
/* Notes the HTTP status of the response when its head is sent. */
void samovar_request_accounting_status(int status);
/* Adds a tag to the request. */
void samovar_request_accounting_tag(const char *name, size_t name_len, const char *value,
                                    size_t len);

/* Adds `times` waits of `ns` in total for a peer without a name. */
void samovar_waits_add(request_accounting_state *l, wait_kind kind, uint32_t times, uint64_t ns);
/* The watcher of blocking calls (interpose/blocking.h). */
samovar_blocking_watcher samovar_waits_watch;

/* Charges a call during which other tasks ran. `ns` is its share of the time that the process
 * slept. `only` is the result of samovar_selected_alone() before the call. Does not change
 * errno. */
void samovar_waits_charge(const blocking_call *call, long result, int only, uint64_t ns);

#endif
