/* The soft reset of the resident model. State of the request is restored to its value at the
 * call of Samovar\serve(). State of the application stays. */
#include "model/reset.h"
#include "functions/engine_settings.h"
#include "functions/wrapped.h"
#include "model/session.h"
#include "rollback/time_limit.h"
#include "sapi/boot_globals.h"
#include "sapi/sapi.h"
#include <php_ini.h>
#include <zend_smart_str.h>
#include <ext/standard/basic_functions.h>
#include <ext/standard/file.h>
#include <ext/standard/php_filestat.h>
#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the state that each request starts from ----------------------------------------------- */

typedef struct {
    zend_ini_entry *entry;
    zend_string *value;
} ini_setting;

/* One of the engine's pairs "current handler, stack of former ones". */
typedef struct {
    zval current;
    zval *former;
    int depth;
} handlers;

static struct {
    ini_setting *ini;
    uint32_t ini_count;
    handlers error, exception;
    int error_handler_reporting;
    HashTable *shutdown_functions;
    HashTable environment;
    char *locale;
    mode_t umask;
    int former_umask; /* the engine's record of the umask before the boot changed it */
    char cwd[MAXPATHLEN];
    HashTable *wrappers; /* of streams: PHP's own that the boot has not replaced; NULL: all */
} base;

static void save_ini(void) {
    base.ini_count = 0;
    HashTable *modified = EG(modified_ini_directives);
    base.ini = emalloc(sizeof(ini_setting) * (modified ? zend_hash_num_elements(modified) + 1 : 1));
    if (!modified) {
        return;
    }
    zend_ini_entry *entry;
    ZEND_HASH_FOREACH_PTR(modified, entry) {
        zend_string *value = entry->value ? zend_string_copy(entry->value) : NULL;
        base.ini[base.ini_count++] = (ini_setting){entry, value};
    }
    ZEND_HASH_FOREACH_END();
}

static const ini_setting *saved_ini(const zend_ini_entry *entry) {
    for (uint32_t i = 0; i < base.ini_count; i++) {
        if (base.ini[i].entry == entry) {
            return &base.ini[i];
        }
    }
    return NULL;
}

static bool is_value(const zend_ini_entry *entry, const zend_string *value) {
    return entry->value == value ||
           (entry->value && value && zend_string_equals(entry->value, (zend_string *)value));
}

/* Stage DEACTIVATE, because the session's settings refuse any other once headers were sent. */
static void restore_ini(void) {
    HashTable *modified = EG(modified_ini_directives);
    if (modified && zend_hash_num_elements(modified) > 0) {
        uint32_t count = zend_hash_num_elements(modified), n = 0;
        zend_ini_entry **changed = emalloc(sizeof *changed * count), *entry;
        ZEND_HASH_FOREACH_PTR(modified, entry) {
            if (!saved_ini(entry)) {
                changed[n++] = entry;
            }
        }
        ZEND_HASH_FOREACH_END();
        if (n > 0) {
            samovar_time_limit_forget(); /* set_time_limit() is an ini change, too */
        }
        for (uint32_t i = 0; i < n; i++) {
            zend_restore_ini_entry(changed[i]->name, PHP_INI_STAGE_DEACTIVATE);
        }
        efree(changed);
    }
    for (uint32_t i = 0; i < base.ini_count; i++) {
        const ini_setting *saved = &base.ini[i];
        if (saved->value && !is_value(saved->entry, saved->value)) {
            samovar_time_limit_forget();
            zend_alter_ini_entry_ex(saved->entry->name, saved->value, PHP_INI_SYSTEM,
                                    PHP_INI_STAGE_DEACTIVATE, 1);
        }
    }
}

static void save_handlers(handlers *to, const zval *current, const zend_stack *stack) {
    ZVAL_COPY(&to->current, (zval *)current);
    to->depth = stack->top;
    to->former = emalloc(sizeof(zval) * (size_t)(stack->top + 1));
    const zval *from = stack->elements;
    for (int i = 0; i < stack->top; i++) {
        ZVAL_COPY(&to->former[i], (zval *)&from[i]);
    }
}

static bool is_same(const zval *a, const zval *b) {
    return Z_TYPE_P(a) == Z_TYPE_P(b) && (!Z_REFCOUNTED_P(a) || Z_COUNTED_P(a) == Z_COUNTED_P(b));
}

static void restore_handlers(const handlers *saved, zval *current, zend_stack *stack) {
    if (is_same(current, &saved->current) && stack->top == saved->depth) {
        return;
    }
    zval old;
    ZVAL_COPY_VALUE(&old, current);
    ZVAL_COPY(current, (zval *)&saved->current);
    zval_ptr_dtor(&old);
    while (!zend_stack_is_empty(stack)) {
        zval_ptr_dtor(zend_stack_top(stack));
        zend_stack_del_top(stack);
    }
    for (int i = 0; i < saved->depth; i++) {
        zval copy;
        ZVAL_COPY(&copy, &saved->former[i]);
        zend_stack_push(stack, &copy);
    }
}

static void forget_last_error(void) {
    PG(last_error_type) = 0;
    if (PG(last_error_message)) {
        zend_string_release(PG(last_error_message));
        PG(last_error_message) = NULL;
    }
    if (PG(last_error_file)) {
        zend_string_release(PG(last_error_file));
        PG(last_error_file) = NULL;
    }
}

/* FG(stream_wrappers) exists only after the application has changed the list. */
static void save_wrappers(void) {
    base.wrappers = NULL;
    if (!FG(stream_wrappers)) {
        return;
    }
    zend_string *name;
    void *wrapper;
    ALLOC_HASHTABLE(base.wrappers);
    zend_hash_init(base.wrappers, 16, NULL, NULL, 0);
    ZEND_HASH_FOREACH_STR_KEY_PTR(php_stream_get_url_stream_wrappers_hash_global(), name, wrapper) {
        if (zend_hash_find_ptr(FG(stream_wrappers), name) == wrapper) {
            zend_hash_add_ptr(base.wrappers, name, wrapper);
        }
    }
    ZEND_HASH_FOREACH_END();
}

/* A request may replace file:// and end before it has put it back. Wrappers with new names stay:
 * libraries register them once and remember that. */
static void restore_wrappers(void) {
    if (!FG(stream_wrappers)) {
        return;
    }
    const HashTable *own =
        base.wrappers ? base.wrappers : php_stream_get_url_stream_wrappers_hash_global();
    zend_string *name;
    void *wrapper;
    ZEND_HASH_FOREACH_STR_KEY_PTR(own, name, wrapper) {
        if (zend_hash_find_ptr(FG(stream_wrappers), name) != wrapper) {
            zend_hash_update_ptr(FG(stream_wrappers), name, wrapper);
        }
    }
    ZEND_HASH_FOREACH_END();
}

void samovar_reset_save(void) {
    forget_last_error();
    save_wrappers();
    samovar_boot_globals_save();
    samovar_engine_settings_save();
    samovar_session_save_handlers();
    save_ini();
    save_handlers(&base.error, &EG(user_error_handler), &EG(user_error_handlers));
    save_handlers(&base.exception, &EG(user_exception_handler), &EG(user_exception_handlers));
    base.error_handler_reporting = EG(user_error_handler_error_reporting);
    base.shutdown_functions = BG(user_shutdown_function_names);
    BG(user_shutdown_function_names) = NULL;
    base.environment = BG(putenv_ht);
    zend_hash_init(&BG(putenv_ht), 1, NULL, base.environment.pDestructor, 0);
    const char *locale = setlocale(LC_ALL, NULL);
    base.locale = estrdup(locale ? locale : "C");
    base.umask = umask(077);
    umask(base.umask);
    /* The engine remembers only the first of several changes. From here on it is that of a
     * request. */
    base.former_umask = BG(umask);
    BG(umask) = -1;
    if (!VCWD_GETCWD(base.cwd, MAXPATHLEN)) {
        base.cwd[0] = 0;
    }
    samovar_cwd_changed = false;
}

static void restore_locale(void) {
    const char *now = setlocale(LC_ALL, NULL);
    if (now && strcmp(now, base.locale) != 0) {
        setlocale(LC_ALL, base.locale);
        zend_update_current_locale();
    }
}

/* Like RSHUTDOWN of ext/standard: data added to the links of one page, such as a session's id,
 * must not be added to the next page. */
static void forget_url_rewriting(url_adapt_state_ex_t *state) {
    if (state->active) {
        smart_str *work[] = {&state->result, &state->buf, &state->tag, &state->arg,
                             &state->attr_val};
        for (size_t i = 0; i < sizeof work / sizeof work[0]; i++) {
            smart_str_free(work[i]);
        }
        state->active = state->tag_type = state->attr_type = 0;
    }
    smart_str_free(&state->form_app);
    smart_str_free(&state->url_app);
}

void samovar_reset(void) {
    forget_url_rewriting(&BG(url_adapt_session_ex));
    forget_url_rewriting(&BG(url_adapt_output_ex));
    php_clear_stat_cache(0, NULL, 0);
    restore_ini();
    restore_handlers(&base.error, &EG(user_error_handler), &EG(user_error_handlers));
    restore_handlers(&base.exception, &EG(user_exception_handler), &EG(user_exception_handlers));
    EG(user_error_handler_error_reporting) = base.error_handler_reporting;
    if (zend_hash_num_elements(&BG(putenv_ht)) > 0) {
        zend_hash_clean(&BG(putenv_ht)); /* Its destructor restores the former values. */
    }
    if (BG(locale_changed)) {
        restore_locale();
    }
    if (BG(umask) != -1) {
        umask(base.umask);
        BG(umask) = -1;
    }
    if (samovar_cwd_changed && base.cwd[0]) {
        if (VCWD_CHDIR(base.cwd) != 0) {
            samovar_note("PHP Samovar: cannot return to the folder %s after a request", base.cwd);
        }
        samovar_cwd_changed = false;
    }
    samovar_engine_settings_restore();
    restore_wrappers();
    forget_last_error();
    EG(exit_status) = 0;
}

/* Called at the end of serve(): the script's own shutdown gets the state that it registered at
 * boot. */
void samovar_reset_drop(void) {
    samovar_boot_globals_drop();
    samovar_engine_settings_drop();
    samovar_session_drop_handlers();
    for (uint32_t i = 0; i < base.ini_count; i++) {
        if (base.ini[i].value) {
            zend_string_release(base.ini[i].value);
        }
    }
    efree(base.ini);
    if (base.wrappers) {
        zend_hash_destroy(base.wrappers);
        FREE_HASHTABLE(base.wrappers);
    }
    handlers *both[] = {&base.error, &base.exception};
    for (int h = 0; h < 2; h++) {
        zval_ptr_dtor(&both[h]->current);
        for (int i = 0; i < both[h]->depth; i++) {
            zval_ptr_dtor(&both[h]->former[i]);
        }
        efree(both[h]->former);
    }
    if (BG(user_shutdown_function_names)) {
        php_free_shutdown_functions();
    }
    BG(user_shutdown_function_names) = base.shutdown_functions;
    zend_hash_destroy(&BG(putenv_ht));
    BG(putenv_ht) = base.environment;
    BG(umask) = base.former_umask;
    efree(base.locale);
}

void samovar_reset_keep_shutdown_functions(void) {
    samovar_reset_undo_shutdown_functions();
    base.shutdown_functions = BG(user_shutdown_function_names);
    BG(user_shutdown_function_names) = NULL;
}

void samovar_reset_undo_shutdown_functions(void) {
    HashTable *boot = base.shutdown_functions, *own = BG(user_shutdown_function_names);
    if (!boot) {
        return;
    }
    BG(user_shutdown_function_names) = boot;
    zval *function;
    if (own) {
        ZEND_HASH_FOREACH_VAL(own, function) {
            zend_hash_next_index_insert_mem(boot, Z_PTR_P(function),
                                            sizeof(php_shutdown_function_entry));
        }
        ZEND_HASH_FOREACH_END();
    }
}
