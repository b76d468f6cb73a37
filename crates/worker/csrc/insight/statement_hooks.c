/* Replaces the handlers of functions that execute statements, and records their calls. */
#include "insight/hooked.h"
#include "insight/request_accounting.h"
#include "insight/statement_hooks.h"
#include <zend_extensions.h>
#include <string.h>

enum { HOOKS_MAX = 640 };

static int reserved = -1; /* index of our field in zend_internal_function.reserved */
static hook hooks[HOOKS_MAX];
static uint32_t hook_count;

/* ---- arguments ----------------------------------------------------------------------------- */

zval *samovar_argument(zend_execute_data *execute_data, uint32_t n) {
    n += Z_TYPE(EX(This)) != IS_OBJECT;
    if (n > ZEND_NUM_ARGS()) {
        return NULL;
    }
    zval *value = ZEND_CALL_ARG(execute_data, n);
    ZVAL_DEREF(value);
    return value;
}

zend_object *samovar_subject(zend_execute_data *execute_data) {
    if (Z_TYPE(EX(This)) == IS_OBJECT) {
        return Z_OBJ(EX(This));
    }
    const zval *first = samovar_argument(execute_data, 0);
    return first && Z_TYPE_P(first) == IS_OBJECT ? Z_OBJ_P(first) : NULL;
}

uint32_t samovar_text_of(const zval *text, sql_dialect dialect, bool *skips) {
    if (!text || Z_TYPE_P(text) != IS_STRING) {
        *skips = true;
        return NO_TEXT;
    }
    return samovar_statements_sql(Z_STR_P(text), dialect);
}

uint32_t samovar_describe_fixed(const hook *h, zend_execute_data *execute_data, bool *skips) {
    return samovar_statements_plain(h->kind, h->text, h->len);
}

uint32_t samovar_describe_argument(const hook *h, zend_execute_data *execute_data, bool *skips) {
    return samovar_text_of(samovar_argument(execute_data, 1), h->dialect, skips);
}

uint32_t samovar_describe_nothing(const hook *h, zend_execute_data *execute_data, bool *skips) {
    *skips = true;
    return NO_TEXT;
}

uint64_t samovar_count_by(zend_function *function, zval *argument) {
    if (!function || EG(exception)) {
        return 0;
    }
    zval result;
    ZVAL_UNDEF(&result);
    zend_call_known_function(function, NULL, NULL, &result, 1, argument, NULL);
    const uint64_t count =
        Z_TYPE(result) == IS_LONG && Z_LVAL(result) > 0 ? (uint64_t)Z_LVAL(result) : 0;
    zval_ptr_dtor(&result);
    return count;
}

/* ---- the hook ------------------------------------------------------------------------------ */

static ZEND_NAMED_FUNCTION(look_at_call) {
    const hook *h = EX(func)->internal_function.reserved[reserved];
    statement_call call;
    bool skips = !samovar_request_accounting_now() || !samovar_statements;
    const bool is_reported = !skips;
    if (is_reported) {
        const uint32_t text = h->describe(h, execute_data, &skips);
        if (!skips) {
            samovar_statement_begin(&call, h->kind, text, h->continues);
        }
    }
    h->original(INTERNAL_FUNCTION_PARAM_PASSTHRU);
    if (is_reported && samovar_statements && (!skips || h->describe == samovar_describe_nothing)) {
        const uint64_t rows =
            h->finish && !EG(exception) ? h->finish(h, execute_data, return_value, &call) : 0;
        if (!skips) {
            samovar_statement_end(&call, !h->continues, rows);
        }
    }
}

/* ---- start --------------------------------------------------------------------------------- */

static const hook *copy_of(const hook *like, zif_handler original) {
    if (hook_count == HOOKS_MAX) {
        return NULL;
    }
    hook *h = &hooks[hook_count++];
    *h = *like;
    h->original = original;
    return h;
}

static void hook_function(zend_function *f, const hook *like) {
    if (!f || f->type != ZEND_INTERNAL_FUNCTION || f->internal_function.handler == look_at_call) {
        return;
    }
    const hook *h = copy_of(like, f->internal_function.handler);
    if (h) {
        f->internal_function.reserved[reserved] = (void *)h;
        f->internal_function.handler = look_at_call;
    }
}

zend_function *samovar_find_function(const HashTable *table, const char *name) {
    return zend_hash_str_find_ptr(table, name, strlen(name));
}

/* Classes of extensions have copies of the functions that they inherit. */
static void hook_method(const zend_class_entry *class, const char *name, const hook *like) {
    zend_class_entry *each;
    ZEND_HASH_FOREACH_PTR(CG(class_table), each) {
        if (each->type == ZEND_INTERNAL_CLASS && instanceof_function(each, class)) {
            hook_function(samovar_find_function(&each->function_table, name), like);
        }
    }
    ZEND_HASH_FOREACH_END();
}

void samovar_hook_all(const char *class_name, const hook_row *rows, size_t count) {
    const zend_class_entry *class =
        class_name ? zend_hash_str_find_ptr(CG(class_table), class_name, strlen(class_name)) : NULL;
    for (const hook_row *row = rows; row < rows + count; row++) {
        if (row->function) {
            hook_function(samovar_find_function(CG(function_table), row->function), &row->like);
        }
        if (class && row->method) {
            hook_method(class, row->method, &row->like);
        }
    }
}

void samovar_statement_hooks_startup(void) {
    reserved = zend_get_resource_handle("samovar");
    if (reserved < 0) {
        return; /* Other extensions use all fields. */
    }
    samovar_hook_pdo();
    samovar_hook_databases();
    samovar_hook_http();
    samovar_hook_redis();
}
