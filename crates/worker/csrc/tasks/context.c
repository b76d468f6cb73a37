/* A task's own stack, and the engine state that belongs to it. The state of code that is
 * suspended is saved, and restored when the code continues. */
#include "tasks/task.h"
#include "sapi/sapi.h"
#include "boundary.h"
#include "compat.h"
#include <zend_exceptions.h>
#include <zend_vm.h>
#include <ext/standard/basic_functions.h>
#include <string.h>

/* ---- state that exists only once ----------------------------------------------------------- */

/* Engine state that is not part of a fiber's own: a pending exception, the mode of error
 * handling, the callbacks of a sort or a serializer. Code that waits inside one of these finds
 * its own state again. */
typedef struct {
    zend_object *exception, *prev_exception;
    const zend_op *opline_before_exception;
    zend_error_handling_t error_handling;
    zend_class_entry *exception_class, *fake_scope;
    zend_fcall_info compare;
    zend_fcall_info_cache compare_cache;
    __typeof__(BG(serialize)) serialize;
    __typeof__(BG(unserialize)) unserialize;
    unsigned serialize_lock;
    zend_string *strtok_string;
    char *strtok_last;
    size_t strtok_len;
} engine_state;

static engine_state engine_now(void) {
    return (engine_state){
        .exception = EG(exception),
        .prev_exception = EG(prev_exception),
        .opline_before_exception = EG(opline_before_exception),
        .error_handling = EG(error_handling),
        .exception_class = EG(exception_class),
        .fake_scope = EG(fake_scope),
        .compare = BG(user_compare_fci),
        .compare_cache = BG(user_compare_fci_cache),
        .serialize = BG(serialize),
        .unserialize = BG(unserialize),
        .serialize_lock = BG(serialize_lock),
        .strtok_string = BG(strtok_string),
        .strtok_last = BG(strtok_last),
        .strtok_len = BG(strtok_len),
    };
}

static void engine_becomes(const engine_state *s) {
    EG(exception) = s->exception;
    EG(prev_exception) = s->prev_exception;
    EG(opline_before_exception) = s->opline_before_exception;
    EG(error_handling) = s->error_handling;
    EG(exception_class) = s->exception_class;
    EG(fake_scope) = (__typeof__(EG(fake_scope)))s->fake_scope;
    BG(user_compare_fci) = s->compare;
    BG(user_compare_fci_cache) = s->compare_cache;
    BG(serialize) = s->serialize;
    BG(unserialize) = s->unserialize;
    BG(serialize_lock) = s->serialize_lock;
    BG(strtok_string) = s->strtok_string;
    BG(strtok_last) = s->strtok_last;
    BG(strtok_len) = s->strtok_len;
}

static void engine_begins(void) {
    const engine_state fresh = {.error_handling = EH_NORMAL};
    engine_becomes(&fresh);
}

/* ---- output buffers ------------------------------------------------------------------------ */

static void output_settles(void) {
    php_output_handler **top = zend_stack_top(&OG(handlers));
    OG(active) = top ? *top : NULL;
}

/* Buffers that a task has opened are removed while it is suspended, so that they do not get the
 * output of others. */
static zend_stack output_leaves(const samovar_task *task) {
    zend_stack own;
    zend_stack_init(&own, sizeof(php_output_handler *));
    while (zend_stack_count(&OG(handlers)) > task->output_base) {
        zend_stack_push(&own, zend_stack_top(&OG(handlers)));
        zend_stack_del_top(&OG(handlers));
    }
    output_settles();
    return own;
}

static void output_returns(samovar_task *task, zend_stack *own) {
    task->output_base = zend_stack_count(&OG(handlers));
    while (!zend_stack_is_empty(own)) {
        zend_stack_push(&OG(handlers), zend_stack_top(own));
        zend_stack_del_top(own);
    }
    zend_stack_destroy(own);
    output_settles();
}

/* Writes out the buffers that a task has not closed, as at the end of a script. */
static void output_ends(const samovar_task *task) {
    while (zend_stack_count(&OG(handlers)) > task->output_base && OG(active)) {
        php_output_end();
    }
}

/* ---- switches ------------------------------------------------------------------------------ */

void samovar_task_switch(zend_fiber_context *to, samovar_task *leaving) {
    const engine_state engine = engine_now();
    zend_stack buffers;
    if (leaving) {
        buffers = output_leaves(leaving);
    }
    zend_fiber_transfer transfer = {.context = to};
    ZVAL_NULL(&transfer.value);
    zend_fiber_switch_context(&transfer);
    engine_becomes(&engine);
    if (leaving) {
        output_returns(leaving, &buffers);
    }
}

/* The engine lets a driver's exception replace one that unwinds gracefully, and frees that one.
 * Then ours is the last reference. */
bool samovar_task_is_unwinding(const samovar_task *task) {
    return task->unwinding && GC_REFCOUNT(task->unwinding) > 1;
}

void samovar_task_unwind(samovar_task *task, bool is_over) {
    if (EG(exception) || samovar_task_is_unwinding(task)) {
        return;
    }
    if (task->unwinding) {
        OBJ_RELEASE(task->unwinding);
    }
    task->unwinding = is_over ? zend_create_unwind_exit() : zend_create_graceful_exit();
    GC_ADDREF(task->unwinding);
    /* Suppresses messages of libraries about the cancelled wait. */
    EG(error_reporting) &= E_FATAL_ERRORS;
    zend_throw_exception_internal(task->unwinding);
    zend_atomic_bool_store_ex(&EG(vm_interrupt), true);
}

/* ---- a task's code ------------------------------------------------------------------------- */

/* The engine's own fibers have such a function at the bottom of their frames, too. */
static zend_function bottom = {.type = ZEND_INTERNAL_FUNCTION};

static void make_frames(const samovar_task *task) {
    zend_vm_stack_init_ex(TASK_VM_STACK_BYTES);
    zend_execute_data *frame = (zend_execute_data *)EG(vm_stack_top);
    EG(vm_stack_top) += ZEND_CALL_FRAME_SLOT;
    memset(frame, 0, sizeof *frame);
    frame->func = &bottom;
    EG(current_execute_data) = frame;
    EG(active_fiber) = NULL;
    EG(jit_trace_num) = 0;
    const char *reporting = "error_reporting";
    EG(error_reporting) = (int)zend_ini_long(reporting, strlen(reporting), 0);
    samovar_stack_is(task->context.stack);
}

/* Prefers the error about a shared connection, because a driver's own exception is less
 * specific. */
static zend_object *what_counts(samovar_task *task, zend_object *thrown) {
    if (!task->conflict || thrown == task->conflict) {
        return thrown;
    }
    OBJ_RELEASE(thrown);
    GC_ADDREF(task->conflict);
    return task->conflict;
}

static void note_end(samovar_task *task) {
    zend_object *thrown = EG(exception);
    if (!thrown) {
        return;
    }
    EG(exception) = NULL;
    if (zend_is_unwind_exit(thrown) && thrown != task->unwinding) {
        task->exited = true;
    }
    if (task->is_cancelled || zend_is_unwind_exit(thrown) || zend_is_graceful_exit(thrown)) {
        OBJ_RELEASE(thrown);
    } else {
        task->thrown = what_counts(task, thrown);
    }
}

static void run(samovar_task *task) {
    task->call.retval = &task->result;
    if (!task->is_cancelled) {
        zend_call_function(&task->call, &task->cache);
        note_end(task);
    }
    zval_ptr_dtor(&task->call.function_name);
    ZVAL_UNDEF(&task->call.function_name);
    output_ends(task);
    if (BG(strtok_string)) {
        zend_string_release(BG(strtok_string));
    }
}

static void enter(zend_fiber_transfer *transfer) {
    samovar_task *task = samovar_task_current();
    engine_begins();
    task->output_base = zend_stack_count(&OG(handlers));
    EG(vm_stack) = NULL;
    zend_first_try {
        make_frames(task);
        run(task);
    }
    zend_catch {
        task->bailed_out = true;
    }
    zend_end_try();
    task->vm_stack = EG(vm_stack);
    transfer->context = samovar_task_finish(task);
    transfer->flags = 0;
    ZVAL_NULL(&transfer->value);
}

static samovar_task *of_context(zend_fiber_context *context) {
    return (samovar_task *)((char *)context - XtOffsetOf(samovar_task, context));
}

static void clean(zend_fiber_context *context) {
    samovar_task *task = of_context(context);
    zend_vm_stack current = EG(vm_stack);
    EG(vm_stack) = task->vm_stack;
    if (EG(vm_stack)) {
        zend_vm_stack_destroy();
    }
    EG(vm_stack) = current;
}

bool samovar_task_context_make(samovar_task *task) {
    static const char kind[] = "a task of Samovar";
    zend_fiber_init_context(&task->context, (void *)kind, enter,
                            samovar_settings->task_stack_bytes);
    task->context.cleanup = clean;
    task->at = &task->context;
    return task->context.stack != NULL;
}
