/* Start and end of PHP in the template, on top of all folders of csrc. Also defines the effect
 * of stop signals in our processes. */
#define _GNU_SOURCE
#include "boundary.h"
#include "module.h"
#include "functions/engine_settings.h"
#include "functions/wrapped.h"
#include "heap_walk/calls.h"
#include "heap_walk/report.h"
#include "insight/statement_hooks.h"
#include "interpose/original.h"
#include "loads/loads.h"
#include "memory/arena.h"
#include "memory/heap.h"
#include "mocks/mocks.h"
#include "model/overrun.h"
#include "outside/boot.h"
#include "outside/descendants.h"
#include "outside/tls.h"
#include "rollback/reseed.h"
#include "rollback/rollback.h"
#include "rollback/taint.h"
#include "sapi/name.h"
#include "sapi/sapi.h"
#include "tasks/task.h"
#include <php_ini.h>
#include <php_open_temporary_file.h>
#include <zend_signal.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

/* ---- signals ------------------------------------------------------------------------------- */

static pid_t our_process;

void samovar_is_ours(void) {
    our_process = getpid();
    samovar_taints_restart();
}

/* A process made by pcntl_fork() has nothing to wait for: the signal ends it, as it does under
 * php-fpm. */
static void end_by(int signal_number) {
    const struct sigaction ending = {.sa_handler = SIG_DFL};
    sigset_t it;
    sigaction(signal_number, &ending, NULL);
    sigemptyset(&it);
    sigaddset(&it, signal_number);
    sigprocmask(SIG_UNBLOCK, &it, NULL);
    kill(getpid(), signal_number);
}

static void stay(int signal_number) {
    if (getpid() != our_process) {
        end_by(signal_number);
    }
}

/* Service managers signal every process of a service, but only the front knows when the last
 * request has got its response. The front stops the workers through the ring. These are handlers
 * and not SIG_IGN, because SIG_IGN would be inherited by programs that PHP starts. They are
 * installed before zend_signal_startup(), which takes the handlers it finds as the default. */
static void leave_stopping_to_the_front(void) {
    const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    struct sigaction action = {.sa_handler = stay, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        sigaction(signals[i], &action, NULL);
    }
}

/* ---- start --------------------------------------------------------------------------------- */

static int startup(sapi_module_struct *module) {
    return php_module_startup(module, &samovar_module_entry);
}

int samovar_php_startup(const samovar_options *options) {
    signal(SIGPIPE, SIG_IGN);
    samovar_is_ours();
    samovar_look_up_originals();
    leave_stopping_to_the_front();
    zend_signal_startup();
    /* Keeps malloc to one heap whose end a rollback can restore. */
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    sapi_module_struct *module = samovar_sapi_prepare(options);
    module->startup = startup;
    module->php_ini_path_override = (char *)options->ini_file;
    sapi_startup(module);
    module->ini_entries = (char *)options->ini_entries;
    if (module->startup(module) == FAILURE) {
        return -1;
    }
    samovar_sapi_started();
    samovar_wrap_functions();
    samovar_mocks_startup();
    samovar_statement_hooks_startup();
    samovar_engine_settings_startup();
    samovar_loads_startup();
    samovar_overrun_startup();
    if (samovar_reports()) {
        samovar_calls_watch();
    }
    pthread_atfork(samovar_boot_forks, NULL, samovar_forked);
    pthread_atfork(samovar_descendants_fork, NULL, NULL);
    pthread_atfork(NULL, NULL, samovar_tasks_forked);
    samovar_reseed_startup();
    samovar_tls_startup();
    samovar_heap_learn();
    samovar_arena_learn();
    return 0;
}

void samovar_php_shutdown(void) {
    samovar_sapi_name_stays();
    php_module_shutdown();
    sapi_shutdown();
}

bool samovar_has_directive(const char *name) {
    return zend_hash_str_exists(EG(ini_directives), name, strlen(name));
}

const char *samovar_directive(const char *name) {
    const zend_ini_entry *entry = zend_hash_str_find_ptr(EG(ini_directives), name, strlen(name));
    if (!entry) {
        return NULL;
    }
    return entry->value ? ZSTR_VAL(entry->value) : "";
}

const char *samovar_extension(size_t number) {
    const zend_module_entry *module;
    ZEND_HASH_FOREACH_PTR(&module_registry, module) {
        if (number-- == 0) {
            return module->name;
        }
    }
    ZEND_HASH_FOREACH_END();
    return NULL;
}

/* The JIT compiles if it has a buffer and is not disabled. A script can switch `off` to on at
 * run time (ext/opcache/jit/zend_jit.c, zend_jit_config()). */
const char *samovar_jit(void) {
    const char *off[] = {"", "0", "off", "no", "false", "disable"};
    const char *mode = zend_ini_string("opcache.jit", sizeof "opcache.jit" - 1, 0);
    const zend_long room =
        zend_ini_long("opcache.jit_buffer_size", sizeof "opcache.jit_buffer_size" - 1, 0);
    if (!mode || room <= 0 || !zend_ini_long("opcache.enable", sizeof "opcache.enable" - 1, 0)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof off / sizeof off[0]; i++) {
        if (strcasecmp(mode, off[i]) == 0) {
            return NULL;
        }
    }
    return mode;
}

/* Skips the depth of the folders and the mode of the files in front of the path
 * (ext/session/mod_files.c, PS_OPEN_FUNC(files)). Without a path, sessions are in PHP's folder
 * for temporary files. */
const char *samovar_sessions(void) {
    const char *handler =
        zend_ini_string("session.save_handler", sizeof "session.save_handler" - 1, 0);
    if (!handler || strcmp(handler, "files") != 0) {
        return NULL;
    }
    const char *path = zend_ini_string("session.save_path", sizeof "session.save_path" - 1, 0);
    if (!path || !*path) {
        return php_get_temporary_directory();
    }
    const char *folder = strrchr(path, ';');
    return folder ? folder + 1 : path;
}

uintptr_t samovar_php_code(void) {
    return (uintptr_t)php_module_startup;
}

const char *samovar_php_version(void) {
    zval *version = zend_get_constant_str("PHP_VERSION", sizeof("PHP_VERSION") - 1);
    return version && Z_TYPE_P(version) == IS_STRING ? Z_STRVAL_P(version) : "unknown";
}

const char *samovar_php_built_for(void) {
    return PHP_VERSION;
}

const char *samovar_php_api_built_for(void) {
    return ZEND_MODULE_BUILD_ID;
}
