/* Calls of doubles: their arguments, the record of them, and the list of those in progress. */
#include "mocks/running.h"
#include <zend_closures.h>
#include <zend_exceptions.h>

/* Maximum number of doubles that run inside each other: each uses up to 1 KiB of the C stack, and
 * the stack of a task has 512 KiB. */
enum { RUNNING_MAX = 256 };

/* Running doubles by the address of their frame; NULL before the first one. */
static HashTable *running;

zend_class_entry *samovar_called_class(const zend_execute_data *frame) {
    if (Z_TYPE(frame->This) == IS_OBJECT) {
        return Z_OBJCE(frame->This);
    }
    return frame->func->common.scope ? Z_CE(frame->This) : NULL;
}

/* Arguments of a frame. Undeclared ones are not next to the others. */
typedef struct {
    uint32_t count;
    zval *all;
    bool is_copy;
} arguments;

static arguments arguments_of(zend_execute_data *frame) {
    arguments a = {.count = ZEND_CALL_NUM_ARGS(frame), .all = ZEND_CALL_ARG(frame, 1)};
    const zend_op_array *code = &frame->func->op_array;
    if (frame->func->type == ZEND_INTERNAL_FUNCTION || a.count <= code->num_args) {
        return a;
    }
    a.all = safe_emalloc(a.count, sizeof(zval), 0);
    a.is_copy = true;
    const zval *declared = ZEND_CALL_ARG(frame, 1);
    const zval *rest = ZEND_CALL_VAR_NUM(frame, code->last_var + code->T);
    for (uint32_t i = 0; i < a.count; i++) {
        const zval *from = i < code->num_args ? &declared[i] : &rest[i - code->num_args];
        ZVAL_COPY_VALUE(&a.all[i], from);
    }
    return a;
}

static HashTable *named_of(const zend_execute_data *frame) {
    return ZEND_CALL_INFO(frame) & ZEND_CALL_HAS_EXTRA_NAMED_PARAMS ? frame->extra_named_params
                                                                    : NULL;
}

static void record(samovar_double *d, const arguments *a, HashTable *named) {
    zval call, *value;
    zend_string *name;
    if (d->called++ >= SAMOVAR_DOUBLE_RECORDED_MAX) {
        return;
    }
    array_init_size(&call, a->count);
    for (uint32_t i = 0; i < a->count; i++) {
        zval one;
        ZVAL_COPY_DEREF(&one, &a->all[i]);
        if (Z_ISUNDEF(one)) {
            ZVAL_NULL(&one);
        }
        zend_hash_next_index_insert(Z_ARRVAL(call), &one);
    }
    if (named) {
        ZEND_HASH_FOREACH_STR_KEY_VAL(named, name, value) {
            zval one;
            ZVAL_COPY_DEREF(&one, value);
            zend_hash_update(Z_ARRVAL(call), name, &one);
        }
        ZEND_HASH_FOREACH_END();
    }
    SEPARATE_ARRAY(&d->calls);
    zend_hash_next_index_insert(Z_ARRVAL(d->calls), &call);
}

static zend_ulong frame_index(const zend_execute_data *frame) {
    return (zend_ulong)(uintptr_t)frame;
}

/* Number of doubles that the present call is in. Others run in suspended fibers. */
static uint32_t nested(void) {
    uint32_t count = 0;
    for (const zend_execute_data *frame = EG(current_execute_data); frame;
         frame = frame->prev_execute_data) {
        count += zend_hash_index_exists(running, frame_index(frame));
    }
    return count;
}

static bool begin(samovar_double *d, const zend_execute_data *frame) {
    if (Z_ISUNDEF(d->callable)) {
        zend_throw_error(NULL,
                         "The double of `%s` was removed while its arguments were computed\n"
                         "hint: restore it after the call",
                         ZSTR_VAL(d->target));
        return false;
    }
    if (!running) {
        ALLOC_HASHTABLE(running);
        zend_hash_init(running, 8, NULL, NULL, 0);
    }
    if (zend_hash_num_elements(running) >= RUNNING_MAX && nested() >= RUNNING_MAX) {
        zend_throw_error(NULL,
                         "%d doubles run inside each other, the last one is that of `%s`\n"
                         "hint: a double that calls the replaced code calls itself; use "
                         "Samovar\\Mock::original()",
                         RUNNING_MAX, ZSTR_VAL(d->target));
        return false;
    }
    zend_hash_index_update_ptr(running, frame_index(frame), d);
    return true;
}

/* A closure that uses `$this` relies on it. */
static bool lacks_this(const zend_function *code, const zend_object *object) {
    return !object && (code->common.fn_flags & ZEND_ACC_USES_THIS) &&
           !(code->common.fn_flags & ZEND_ACC_STATIC);
}

static void call(const samovar_double *d, zend_execute_data *frame, const arguments *a,
                 zval *returned) {
    zval callable;
    zend_fcall_info info = {.size = sizeof info, .retval = returned, .params = a->all};
    zend_fcall_info_cache cache;
    const bool is_method = d->kind == SAMOVAR_DOUBLE_METHOD && d->is_bound;
    zend_object *object = Z_TYPE(frame->This) == IS_OBJECT ? Z_OBJ(frame->This) : NULL;
    memset(&cache, 0, sizeof cache);
    info.param_count = a->count;
    info.named_params = named_of(frame);
    if (is_method && (d->ce->ce_flags & ZEND_ACC_TRAIT)) {
        /* Each class that uses the trait is a scope of its own. */
        const zend_function *code = zend_get_closure_method_def(Z_OBJ(d->callable));
        zend_create_closure(&callable, (zend_function *)code, frame->func->common.scope,
                            samovar_called_class(frame), NULL);
    } else {
        ZVAL_COPY(&callable, &d->callable);
    }
    ZVAL_COPY_VALUE(&info.function_name, &callable);
    if (is_method) {
        cache.function_handler = (zend_function *)zend_get_closure_method_def(Z_OBJ(callable));
        cache.called_scope = samovar_called_class(frame);
        cache.object = object;
    }
    if (is_method && lacks_this(cache.function_handler, object)) {
        zend_throw_error(NULL,
                         "The double of `%s` uses $this, but the call has no object\n"
                         "hint: pass values to the closure with `use`",
                         ZSTR_VAL(d->target));
    } else {
        zend_call_function(&info, is_method ? &cache : NULL);
    }
    zval_ptr_dtor(&callable);
}

void samovar_double_run(samovar_double *d, zend_execute_data *frame, zval *returned) {
    ZVAL_UNDEF(returned);
    if (!begin(d, frame)) {
        return;
    }
    const arguments a = arguments_of(frame);
    record(d, &a, named_of(frame));
    call(d, frame, &a, returned);
    zend_hash_index_del(running, frame_index(frame));
    if (a.is_copy) {
        efree(a.all);
    }
    if (EG(exception)) {
        zval_ptr_dtor(returned);
        ZVAL_UNDEF(returned);
    } else if (Z_ISREF_P(returned) && !(frame->func->common.fn_flags & ZEND_ACC_RETURN_REFERENCE)) {
        zend_unwrap_reference(returned);
    }
}

zend_execute_data *samovar_double_running(samovar_double **d) {
    zend_execute_data *frame = running ? EG(current_execute_data) : NULL;
    while (frame) {
        *d = zend_hash_index_find_ptr(running, frame_index(frame));
        if (*d) {
            return frame;
        }
        frame = frame->prev_execute_data;
    }
    return NULL;
}

void samovar_running_end(void) {
    if (running) {
        zend_hash_destroy(running);
        FREE_HASHTABLE(running);
        running = NULL;
    }
}
