/* Samovar\Task and async(): a task as PHP code sees it. Functions that run several tasks at once
 * are in task_groups.c. */
#include "functions/tasks.h"
#include "insight/request_accounting.h"
#include <zend_closures.h>
#include <zend_exceptions.h>
#include <ext/spl/spl_exceptions.h>
#include "functions/arginfo/prototypes.h"
#include "functions/arginfo/task.h"

enum { SECONDS_MAX = 10 * 366 * 24 * 3600 };

zend_class_entry *samovar_timeout_exception;
static zend_class_entry *ce, *cancelled_exception;
static zend_object_handlers object_handlers;

/* ---- waits --------------------------------------------------------------------------------- */

uint64_t samovar_deadline(bool is_given, double seconds) {
    if (!is_given) {
        return 0;
    }
    return samovar_now_ns() + 1 + (uint64_t)(MIN(seconds, (double)SECONDS_MAX) * 1e9);
}

bool samovar_seconds_are_valid(uint32_t argument, double seconds) {
    if (seconds >= 0) {
        return true;
    }
    zend_argument_value_error(argument, "must be greater than or equal to 0");
    return false;
}

bool samovar_wait_for_word(const void *about, uint64_t deadline_ns, const char *late) {
    task_wait wait = {.told = about, .deadline_ns = deadline_ns};
    const task_woken woken = samovar_task_wait(&wait);
    if (woken == WOKEN_LATE && !EG(exception)) {
        zend_throw_exception(samovar_timeout_exception, late, 0);
    }
    return woken == WOKEN_READY && !EG(exception);
}

/* ---- objects ------------------------------------------------------------------------------- */

static zend_object *create(zend_class_entry *type) {
    samovar_task *task = zend_object_alloc(sizeof *task, type);
    memset(task, 0, XtOffsetOf(samovar_task, std));
    ZVAL_UNDEF(&task->result);
    ZVAL_UNDEF(&task->call.function_name);
    zend_object_std_init(&task->std, type);
    object_properties_init(&task->std, type);
    task->std.handlers = &object_handlers;
    return &task->std;
}

static void tell_unheard(const samovar_task *task) {
    zval of_object;
    const zend_object *thrown = task->thrown;
    zval *message =
        zend_read_property_ex(zend_get_exception_base((zend_object *)thrown), (zend_object *)thrown,
                              ZSTR_KNOWN(ZEND_STR_MESSAGE), 1, &of_object);
    zend_error(E_WARNING, "%s ended with an exception, and was never awaited: %s: %s", task->name,
               ZSTR_VAL(thrown->ce->name),
               Z_TYPE_P(message) == IS_STRING ? Z_STRVAL_P(message) : "");
}

static void free_object(zend_object *object) {
    samovar_task *task = samovar_task_of(object);
    if (task->thrown && !task->is_awaited && !task->is_cancelled && !EG(exception) &&
        instanceof_function(task->thrown->ce, zend_ce_throwable)) {
        tell_unheard(task);
    }
    if (task->thrown) {
        OBJ_RELEASE(task->thrown);
    }
    if (task->conflict) {
        OBJ_RELEASE(task->conflict);
    }
    if (task->unwinding) {
        OBJ_RELEASE(task->unwinding);
    }
    zval_ptr_dtor(&task->result);
    zval_ptr_dtor(&task->call.function_name);
    zend_object_std_dtor(object);
}

/* Writes the place of a closure in the application's code. */
static void write_place(char *to, size_t room, const zend_fcall_info_cache *cache) {
    const zend_function *function = cache->function_handler;
    if (function && function->type == ZEND_USER_FUNCTION) {
        snprintf(to, room, "%s:%u", ZSTR_VAL(function->op_array.filename),
                 function->op_array.line_start);
    } else {
        snprintf(to, room, "%s()",
                 function && function->common.function_name
                     ? ZSTR_VAL(function->common.function_name)
                     : "a function");
    }
}

samovar_task *samovar_task_new(zend_fcall_info *call, zend_fcall_info_cache *cache,
                               const char *name, size_t len) {
    zval made;
    char place[TASK_NAME_BYTES];
    object_init_ex(&made, ce);
    samovar_task *task = samovar_task_of(Z_OBJ(made));
    task->call = *call;
    task->cache = *cache;
    task->call.param_count = 0;
    task->call.named_params = NULL;
    Z_TRY_ADDREF(task->call.function_name);
    write_place(place, sizeof place, cache);
    if (name) {
        snprintf(task->name, sizeof task->name, "the task \"%.*s\" (%s)", (int)MIN(len, 40), name,
                 place);
    } else {
        snprintf(task->name, sizeof task->name, "the task of %s", place);
    }
    return task;
}

/* ---- functions ----------------------------------------------------------------------------- */

ZEND_FUNCTION(Samovar_async) {
    zend_fcall_info call;
    zend_fcall_info_cache cache;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_FUNC(call, cache)
    ZEND_PARSE_PARAMETERS_END();
    samovar_task *task = samovar_task_new(&call, &cache, NULL, 0);
    samovar_task_begin(task);
    RETVAL_OBJ(&task->std);
}

ZEND_FUNCTION(Samovar_delay) {
    double seconds;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_DOUBLE(seconds)
    ZEND_PARSE_PARAMETERS_END();
    if (!samovar_seconds_are_valid(1, seconds)) {
        RETURN_THROWS();
    }
    task_wait wait = {.deadline_ns = samovar_deadline(true, seconds)};
    samovar_task_wait(&wait);
}

/* ---- methods ------------------------------------------------------------------------------- */

static ZEND_METHOD(Samovar_Task, __construct) {
    ZEND_PARSE_PARAMETERS_NONE();
}

static void tell_end(samovar_task *task, zval *return_value) {
    task->is_awaited = true;
    if (task->thrown) {
        GC_ADDREF(task->thrown);
        zend_throw_exception_internal(task->thrown);
    } else if (task->is_cancelled || Z_ISUNDEF(task->result)) {
        zend_throw_exception_ex(cancelled_exception, 0, "%s was cancelled", task->name);
    } else {
        ZVAL_COPY(return_value, &task->result);
    }
}

static ZEND_METHOD(Samovar_Task, current) {
    ZEND_PARSE_PARAMETERS_NONE();
    samovar_task *task = samovar_task_current();
    if (task) {
        RETURN_OBJ_COPY(&task->std);
    }
}

static ZEND_METHOD(Samovar_Task, await) {
    double seconds = 0;
    bool is_endless = true;
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_DOUBLE_OR_NULL(seconds, is_endless)
    ZEND_PARSE_PARAMETERS_END();
    samovar_task *task = samovar_task_of(Z_OBJ_P(ZEND_THIS));
    if (!is_endless && !samovar_seconds_are_valid(1, seconds)) {
        RETURN_THROWS();
    }
    if (task == samovar_task_current()) {
        zend_throw_error(NULL, "A task cannot await itself");
        RETURN_THROWS();
    }
    const uint64_t deadline = samovar_deadline(!is_endless, seconds);
    while (task->state != TASK_DONE) {
        if (!samovar_wait_for_word(samovar_task_ends, deadline,
                                   "Timed out: the awaited task did not end")) {
            RETURN_THROWS();
        }
    }
    tell_end(task, return_value);
}

static ZEND_METHOD(Samovar_Task, cancel) {
    ZEND_PARSE_PARAMETERS_NONE();
    samovar_task_cancel(samovar_task_of(Z_OBJ_P(ZEND_THIS)));
}

static ZEND_METHOD(Samovar_Task, isDone) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_BOOL(samovar_task_of(Z_OBJ_P(ZEND_THIS))->state == TASK_DONE);
}

/* ---- startup ------------------------------------------------------------------------------- */

static zend_class_entry *exception_class(const char *name) {
    zend_class_entry type;
    INIT_CLASS_ENTRY_EX(type, name, strlen(name), NULL);
    return zend_register_internal_class_ex(&type, spl_ce_RuntimeException);
}

void samovar_task_startup(void) {
    zend_class_entry type;
    INIT_NS_CLASS_ENTRY(type, "Samovar", "Task", samovar_methods);
    ce = zend_register_internal_class(&type);
    ce->create_object = create;
    ce->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NO_DYNAMIC_PROPERTIES | ZEND_ACC_NOT_SERIALIZABLE;
    memcpy(&object_handlers, &std_object_handlers, sizeof object_handlers);
    object_handlers.offset = XtOffsetOf(samovar_task, std);
    object_handlers.free_obj = free_object;
    object_handlers.clone_obj = NULL;
    samovar_timeout_exception = exception_class("Samovar\\TimeoutException");
    cancelled_exception = exception_class("Samovar\\CancelledException");
}
