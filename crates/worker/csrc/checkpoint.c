/* Samovar\checkpoint() and Samovar\warmup(): the checkpoint model.
 *
 * The front controller is booted down to the checkpoint in a process of its own, where the image is
 * taken and the workers are forked. In a worker checkpoint() returns once for each request; at the
 * script's end samovar_end_below() ends the request as php-fpm would, and the process returns to
 * the image. */
#include "samovar.h"
#include "image.h"
#include <zend_exceptions.h>
#include <zend_fibers.h>
#include <zend_generators.h>
#include <zend_virtual_cwd.h>
#include <ext/session/php_session.h>
#include <ext/standard/basic_functions.h>
#include <ext/standard/php_filestat.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

/* A PHP without sessions has no such symbol. */
#pragma weak ps_globals

enum {
    HEAP_SLACK_BYTES = 8 << 20,       /* room in malloc's heap that requests need not ask for */
    WARMUP_LIMIT_MS = 30000,          /* for one warm-up request */
    WARMUP_REPORT_BYTES_MAX = 8 << 20 /* of class names that it loaded */
};

bool samovar_warming;
int samovar_place = SAMOVAR_RUNS_SCRIPTS;
bool samovar_below_checkpoint;

/* What there was when the image was taken: the rest is the request's to close. */
static zend_ulong first_resource;
static zend_object **boot_objects;
static uint32_t boot_object_count;
/* The write end of the report, in the process that runs a warm-up request; else -1. */
static int warmup_report = -1;

/* ---- before the image ---------------------------------------------------------------------- */

/* /proc/self and its like are another process in each worker. */
static bool is_own_path(const realpath_cache_bucket *b) {
    return strncmp(b->path, "/proc/", 6) == 0 || strncmp(b->path, "/dev/", 5) == 0;
}

/* `keep`: the others would expire for the image, not for the process: from some minute on each
 * request would look every path up again. */
static void settle_realpaths(bool keep) {
    realpath_cache_bucket **buckets = realpath_cache_get_buckets();
    for (zend_long i = 0; i < realpath_cache_max_buckets(); i++) {
        for (realpath_cache_bucket *b = buckets[i], *next; b; b = next) {
            next = b->next;
            if (is_own_path(b)) {
                realpath_cache_del(b->path, b->path_len);
            } else if (keep) {
                b->expires = LONG_MAX;
            }
        }
    }
}

/* Compiled scripts are not read again, and their files would be closed under the image by the first
 * request's end. */
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

static void tidy(void) {
    gc_collect_cycles();
    samovar_reseed_warm_up();
    php_clear_stat_cache(0, NULL, 0);
    settle_realpaths(zend_ini_long("realpath_cache_ttl", sizeof("realpath_cache_ttl") - 1, 0) > 0);
    void *volatile slack = malloc(HEAP_SLACK_BYTES);
    free(slack);
    samovar_heap_close();
}

/* The iterators of SPL close their files when they are destructed, not when they are freed. What
 * runs PHP code then (generators, fibers: their `finally`) does not count. */
static bool closes_when_destructed(const zend_object *object) {
    return !object->ce->destructor && object->handlers->dtor_obj != zend_objects_destroy_object &&
           object->ce != zend_ce_generator && object->ce != zend_ce_fiber;
}

/* What holds more than memory, a connection for one, must outlive the end of a request, which
 * empties the global scope: a reference more keeps it. Destructors of classes run all the same. */
static void hold_what_is_open(void) {
    for (uint32_t i = 1; i < EG(objects_store).top; i++) {
        zend_object *object = EG(objects_store).object_buckets[i];
        if (!IS_OBJ_VALID(object)) {
            continue;
        }
        if (object->handlers->free_obj != zend_object_std_dtor) {
            GC_ADDREF(object);
        }
        if (closes_when_destructed(object)) {
            GC_ADD_FLAGS(object, IS_OBJ_DESTRUCTOR_CALLED);
        }
    }
    zval *resource;
    ZEND_HASH_FOREACH_VAL(&EG(regular_list), resource) {
        Z_ADDREF_P(resource);
    }
    ZEND_HASH_FOREACH_END();
}

static void remember_objects(void) {
    hold_what_is_open();
    samovar_connections_remember();
    const zend_objects_store *store = &EG(objects_store);
    boot_object_count = store->top;
    boot_objects = pemalloc(sizeof *boot_objects * (store->top + 1), 1);
    memcpy(boot_objects, store->object_buckets, sizeof *boot_objects * store->top);
    first_resource = (zend_ulong)EG(regular_list).nNextFreeElement;
}

static bool is_of_boot(uint32_t handle, const zend_object *object) {
    return handle < boot_object_count && boot_objects[handle] == object;
}

/* Whether what the boot has left open lets an image be taken here. Does not return in an image
 * process that cannot go on. */
static int survey(void) {
    if (samovar_place == SAMOVAR_REHEARSES) {
        _exit(0);
    }
    close_scripts();
    const int fall = samovar_survey();
    if (fall == FALL_SCRIPT) {
        samovar_image_is("script", 0, 0);
    } else if (fall == FALL_WORKER && samovar_place == SAMOVAR_BOOTS_IMAGE) {
        samovar_image_is("worker", 0, 0);
    }
    return fall;
}

static bool take_image(void) {
    tidy();
    remember_objects();
    const char *problem = samovar_image_take();
    if (problem) {
        samovar_finding("image", "script", problem, "", "each request runs the whole script");
        samovar_image_is("script", 0, 0);
        return false;
    }
    samovar_image_is("shared", samovar_image->held_bytes, samovar_image->region_count);
    if (!samovar_rollback_here()) {
        samovar_note("PHP Samovar: this worker cannot roll back (are /proc/self/pagemap and statm "
                     "readable?)");
        samovar_leave_for(LEAVE_FATAL);
    }
    return true;
}

bool samovar_take_image(void) {
    return survey() != FALL_SCRIPT && take_image();
}

/* Samovar\\serve() without rollback: nothing is rolled back, so that forks may share what they
 * boot, unless it is something that two processes cannot both use. */
void samovar_share_boot(void) {
    settle_realpaths(false);
    const int fall = samovar_survey();
    samovar_image_is(fall == FALL_SHARED ? "resident" : "worker", 0, 0);
    samovar_reseed_prepare();
    samovar_reseed();
}

/* ---- the end of a request ------------------------------------------------------------------ */

/* Streams flush, temporary files go, connections say goodbye: what the request has opened, the
 * youngest first, as zend_close_rsrc_list() does. */
static void close_resources(void) {
    HashTable *list = &EG(regular_list);
    for (uint32_t i = list->nNumUsed; i-- > 0;) {
        zval *zv = list->nNumUsed > i ? ZEND_HASH_ELEMENT(list, i) : NULL;
        if (zv && Z_TYPE_P(zv) == IS_RESOURCE && (zend_ulong)Z_RES_HANDLE_P(zv) >= first_resource) {
            zend_list_close(Z_RES_P(zv));
        }
    }
}

/* As zend_objects_store_free_object_storage(): an archive is written, a transaction rolled back. */
static void free_objects(void) {
    zend_objects_store *store = &EG(objects_store);
    for (uint32_t i = store->top; i-- > 1;) {
        zend_object *object = store->object_buckets[i];
        if (IS_OBJ_VALID(object) && !is_of_boot(i, object) &&
            !(OBJ_FLAGS(object) & IS_OBJ_FREE_CALLED) &&
            object->handlers->free_obj != zend_object_std_dtor) {
            GC_ADD_FLAGS(object, IS_OBJ_FREE_CALLED);
            GC_ADDREF(object);
            object->handlers->free_obj(object);
        }
    }
}

/* php_request_shutdown() (php-src main/main.c) without what only frees memory. */
static void end_like_php(void) {
    EG(flags) |= EG_FLAGS_IN_SHUTDOWN;
    EG(current_execute_data) = NULL;
#ifdef ZEND_HAS_OOM
    EG(delayed_oom).state = ZEND_OOM_STATE_NONE;
#endif
    zend_try {
        php_call_shutdown_functions();
    }
    zend_end_try();
    zend_try {
        zend_call_destructors();
    }
    zend_end_try();
    zend_try {
        php_output_end_all();
    }
    zend_end_try();
    zend_deactivate_modules();
    zend_try {
        php_output_deactivate();
    }
    zend_end_try();
    EG(flags) |= EG_FLAGS_IN_RESOURCE_SHUTDOWN;
    zend_try {
        close_resources();
    }
    zend_end_try();
    zend_try {
        free_objects();
    }
    zend_end_try();
    zend_try {
        samovar_connections_end_transactions();
    }
    zend_end_try();
    zend_try {
        sapi_deactivate();
    }
    zend_end_try();
}

/* What a warm-up request has loaded, for the process that will be the image. */
static void report_classes(void) {
    zend_string *name;
    zval *class;
    if (write(warmup_report, "", 1) < 0) { /* An empty name: the request came to its end. */
        return;
    }
    ZEND_HASH_MAP_FOREACH_STR_KEY_VAL(EG(class_table), name, class) {
        const zend_class_entry *ce = Z_PTR_P(class);
        if (Z_TYPE_P(class) == IS_PTR && ce->type == ZEND_USER_CLASS && name &&
            !(ce->ce_flags & ZEND_ACC_ANON_CLASS) &&
            memchr(ZSTR_VAL(name), 0, ZSTR_LEN(name)) == NULL &&
            write(warmup_report, ZSTR_VAL(ce->name), ZSTR_LEN(ce->name) + 1) < 0) {
            return;
        }
    }
    ZEND_HASH_FOREACH_END();
}

_Noreturn void samovar_end_below(void) {
    if (warmup_report >= 0) {
        report_classes();
    }
    end_like_php();
    if (!samovar_survivors) {
        _exit(EG(exit_status)); /* A warm-up request, or a process that a request has forked. */
    }
    const size_t peak = zend_memory_peak_usage(0);
    samovar_survivors->unclean = CG(unclean_shutdown);
    samovar_current = NULL;
    samovar_finish(peak);
    samovar_roll_back();
}

/* ---- warm-up ------------------------------------------------------------------------------- */

/* Class names, each with its NUL, until the other process has ended. */
static size_t read_report(int from, char *to, size_t room) {
    size_t have = 0;
    struct pollfd ready = {.fd = from, .events = POLLIN};
    while (have < room && poll(&ready, 1, WARMUP_LIMIT_MS) == 1) {
        ssize_t n = read(from, to + have, room - have);
        if (n <= 0) {
            return have;
        }
        have += (size_t)n;
    }
    return have;
}

static void load_classes(const char *names, size_t len) {
    for (const char *at = names, *end = names + len; at < end; at += strlen(at) + 1) {
        if (!*at) {
            continue;
        }
        zend_string *name = zend_string_init(at, strlen(at), 0);
        zend_lookup_class(name);
        zend_string_release(name);
        if (EG(exception)) {
            zend_clear_exception();
        }
    }
}

/* Runs one request below the checkpoint in a child, whose end nobody has to undo, and loads here
 * what it loaded there. True in the child. */
static bool warm_up_by_child(const samovar_head *head) {
    int ends[2];
    if (pipe(ends) != 0) {
        return false;
    }
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        warmup_report = ends[1];
        samovar_current = head;
        samovar_warming = true;
        return true;
    }
    close(ends[1]);
    char *names = malloc(WARMUP_REPORT_BYTES_MAX);
    size_t len = child > 0 && names ? read_report(ends[0], names, WARMUP_REPORT_BYTES_MAX - 1) : 0;
    close(ends[0]);
    if (child > 0) {
        kill(child, SIGKILL); /* It has ended, or has had its time. */
        waitpid(child, NULL, 0);
    }
    if (len > 0) {
        names[len] = 0;
        load_classes(names, len);
    } else {
        samovar_note("PHP Samovar: the warm-up request %s did not come to its end",
                     samovar_text(head, head->target));
    }
    free(names);
    return false;
}

/* True in a child that is to run the request. Only where a child may use what the boot has opened:
 * its end would close connections. */
static bool warm_up(void) {
    const samovar_head *head;
    while ((head = samovar_next_warmup())) {
        if (warm_up_by_child(head)) {
            return true;
        }
    }
    return false;
}

static void log_exception(void) {
    if (!zend_is_unwind_exit(EG(exception))) {
        zend_string *message = zval_get_string(zend_read_property_ex(
            EG(exception)->ce, EG(exception), ZSTR_KNOWN(ZEND_STR_MESSAGE), 1, &(zval){0}));
        samovar_note("PHP Samovar: the warm-up threw %s: %s", ZSTR_VAL(EG(exception)->ce->name),
                     ZSTR_VAL(message));
        zend_string_release(message);
    }
    zend_clear_exception();
}

static void abort_session(void) {
    zval name, returned;
    if (!samovar_has_sessions() || PS(session_status) != php_session_active) {
        return;
    }
    ZVAL_STRING(&name, "session_abort");
    call_user_function(NULL, NULL, &name, &returned, 0, NULL);
    zval_ptr_dtor(&name);
}

ZEND_FUNCTION(Samovar_warmup) {
    zend_fcall_info info;
    zend_fcall_info_cache cache;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_FUNC(info, cache)
    ZEND_PARSE_PARAMETERS_END();
    if (!samovar_is_boot() || samovar_below_checkpoint || samovar_serving) {
        return;
    }
    samovar_activate_startup();
    const sapi_headers_struct headers = SG(sapi_headers);
    zend_llist_init(&SG(sapi_headers).headers, sizeof(sapi_header_struct), headers.headers.dtor, 0);
    zval returned;
    ZVAL_UNDEF(&returned);
    info.retval = &returned;
    php_output_start_default();
    const int level = php_output_get_level();
    zend_call_function(&info, &cache);
    zval_ptr_dtor(&returned);
    if (EG(exception)) {
        log_exception();
    }
    while (php_output_get_level() >= level) {
        php_output_discard();
    }
    abort_session();
    zend_llist_destroy(&SG(sapi_headers).headers);
    SG(sapi_headers) = headers;
}

/* ---- checkpoint ---------------------------------------------------------------------------- */

static void wait_for_request(void) {
    samovar_current = samovar_take();
    if (!samovar_current) {
        _exit(0); /* The server stops, or a connection has died (boundary.rs has said so). */
    }
}

void samovar_checkpoint(void) {
    if (samovar_below_checkpoint || samovar_serving) {
        return;
    }
    if (samovar_place == SAMOVAR_RUNS_CONSOLE) {
        return;
    }
    if (samovar_place == SAMOVAR_RUNS_SCRIPTS) {
        samovar_met_checkpoint();
        return;
    }
    samovar_activate_startup();
    samovar_below_checkpoint = true;
    const int fall = survey();
    if (fall == FALL_SHARED && warm_up()) {
        samovar_activate_below();
        return;
    }
    if (fall == FALL_SCRIPT || !take_image()) {
        /* Only in a worker that boots by itself: the image process has ended. */
        samovar_leave_for(LEAVE_FATAL);
    }
    samovar_resident(true);
    wait_for_request();
    samovar_answered = false;
    samovar_activate_below();
}

ZEND_FUNCTION(Samovar_checkpoint) {
    ZEND_PARSE_PARAMETERS_NONE();
    samovar_checkpoint();
}

int samovar_may_take(void) {
    return !samovar_survivors || samovar_kernel_connections_live(samovar_survivors);
}
