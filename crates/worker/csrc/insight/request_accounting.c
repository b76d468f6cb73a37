/* take → finish: opens the accounting of one request, and turns it into the report that the
 * front reads.
 *
 * Rust opens it when a request is taken, and requests the report before it finishes the slot
 * (boundary.rs). In between, events are recorded where they happen. */
#define _GNU_SOURCE
#include "interpose/network.h"
#include "insight/request_accounting.h"
#include "compat.h"
#include "insight/report.h"
#include "insight/statements.h"
#include "insight/timeline.h"
#include <php.h>
#include <SAPI.h>
#include <php_main.h>
#include <time.h>

request_accounting_state *samovar_request_accounting;

/* ---- called by Rust ------------------------------------------------------------------------ */

void samovar_request_accounting_install(void) {
    samovar_request_accounting = samovar_shared_memory(sizeof *samovar_request_accounting);
    samovar_statements_install();
    samovar_timeline_install();
}

void samovar_request_accounting_open(const samovar_head *head, uint64_t taken_ns,
                                     uint64_t boot_ago_ns, uint64_t boot_ns) {
    samovar_network_open(head->flags & SAMOVAR_NO_NETWORK);
    request_accounting_state *l = samovar_request_accounting;
    if (!l || !(head->flags & SAMOVAR_REQUEST_ACCOUNTING)) {
        return;
    }
    /* Setting their counts to 0 empties the tables. */
    l->is_open = true;
    l->in_names = l->sleeps_known = false;
    l->ending = ENDING_RETURNED;
    l->dropped = l->wait_count = l->other_kinds = l->tag_count = l->timer_count = 0;
    l->longest_ns = l->booted_ns = 0;
    l->error_count = 0;
    l->has_thrown = l->thrown_is_unhandled = false;
    l->status = 0;
    l->taken_ns = taken_ns;
    l->worker_ago_ns = boot_ago_ns;
    l->worker_boot_ns = boot_ns;
    l->place.len = l->route.len = 0;
    for (int i = 0; i < KNOWN_PEERS; i++) {
        l->known[i].fd = -1;
    }
    samovar_statements_open();
    samovar_timeline_open(taken_ns);
    samovar_watcher = samovar_waits_watch;
}

const uint8_t *samovar_request_accounting_close(size_t *len, samovar_ending *ending) {
    request_accounting_state *l = samovar_request_accounting_now();
    if (!l) {
        return NULL;
    }
    if (samovar_watcher == samovar_waits_watch) {
        /* With another watcher, tasks are still in flight after the end of the response. */
        samovar_watcher = NULL;
    }
    l->is_open = false;
    *ending = l->ending;
    *len = samovar_report_write(l);
    return l->report;
}

void samovar_request_accounting_client(uint32_t times, uint64_t ns) {
    request_accounting_state *l = samovar_request_accounting_now();
    if (l) {
        samovar_waits_add(l, WAIT_CLIENT, times, ns);
    }
}

void samovar_request_accounting_forked(void) {
    samovar_watcher = NULL;
    samovar_request_accounting = NULL;
    samovar_statements = NULL;
    samovar_timeline = NULL;
}

void samovar_request_accounting_booted(void) {
    request_accounting_state *l = samovar_request_accounting_now();
    if (l) {
        l->booted_ns = samovar_now_ns();
    }
}

/* ---- data from the application ------------------------------------------------------------- */

void samovar_request_accounting_route(const char *name, size_t len) {
    request_accounting_state *l = samovar_request_accounting_now();
    if (l) {
        samovar_short_name(&l->route, name, len);
    }
}

void samovar_request_accounting_status(int status) {
    request_accounting_state *l = samovar_request_accounting_now();
    if (l) {
        l->status = status;
    }
}

void samovar_request_accounting_tag(const char *name, size_t name_len, const char *value,
                                    size_t len) {
    request_accounting_state *l = samovar_request_accounting_now();
    if (!l) {
        return;
    }
    if (l->tag_count == TAGS_MAX) {
        l->dropped++;
        return;
    }
    request_tag *tag = &l->tags[l->tag_count++];
    samovar_short_name(&tag->name, name, name_len);
    samovar_short_name(&tag->value, value, len);
}

/* ---- the end of a request ------------------------------------------------------------------ */

/* A fatal error before or after exit() is more specific. */
static void note_exit(void) {
    request_accounting_state *l = samovar_request_accounting_now();
    if (l && l->ending == ENDING_RETURNED) {
        l->ending = ENDING_EXIT;
    }
}

#if SAMOVAR_EXIT_IS_FUNCTION
static zif_handler original_exit;

static ZEND_NAMED_FUNCTION(look_at_exit) {
    note_exit();
    original_exit(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static void watch_exit(void) {
    static const char *const names[] = {"exit", "die"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        zend_function *f = zend_hash_str_find_ptr(CG(function_table), names[i], strlen(names[i]));
        if (f && f->type == ZEND_INTERNAL_FUNCTION) {
            original_exit = f->internal_function.handler;
            f->internal_function.handler = look_at_exit;
        }
    }
}
#else
static user_opcode_handler_t original_exit;

static int look_at_exit(zend_execute_data *execute_data) {
    note_exit();
    return original_exit ? original_exit(execute_data) : ZEND_USER_OPCODE_DISPATCH;
}

/* Extensions that start later and set this handler, too, call the handler that they find. */
static void watch_exit(void) {
    original_exit = zend_get_user_opcode_handler(ZEND_EXIT);
    zend_set_user_opcode_handler(ZEND_EXIT, look_at_exit);
}
#endif

void samovar_request_accounting_startup(void) {
    watch_exit();
}
