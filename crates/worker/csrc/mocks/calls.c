/* The engine's hooks for calls.
 *
 * Code is compiled while zend_execute_ex and zend_execute_internal are set, so that each call is a
 * ZEND_DO_FCALL, whose handler reads both. At run time they are set only while there are doubles.
 * Calls of functions without a double then use the C stack no more than before: on_call() enters
 * them, as the engine's own handler does without hooks. */
#include "mocks/calls.h"
#include "mocks/mocks.h"
#include "compat.h"
#include <zend_closures.h>
#include <zend_compile.h>
#include <zend_exceptions.h>
#include <zend_interfaces.h>
#include <zend_observer.h>
#include <zend_vm.h>

/* Maximum number of doubles that run inside each other: each uses about 1 KiB of the C stack. */
enum { RUNNING_MAX = 1000 };
/* Maximum number of frames of internal functions between a call and its caller. */
enum { INTERNAL_FRAMES_MAX = 16 };
/* Flags of functions whose calls only the engine's own handler starts. */
#if defined(ZEND_ACC_NODISCARD)
enum { SPECIAL_FLAGS = ZEND_ACC_ABSTRACT | ZEND_ACC_DEPRECATED | ZEND_ACC_NODISCARD };
#else
enum { SPECIAL_FLAGS = ZEND_ACC_ABSTRACT | ZEND_ACC_DEPRECATED };
#endif

/* Code whose calls of functions reach no double: a double of `is_string` or `file_exists` must not
 * break the test framework or the loader of classes. */
static const char *const framework[] = {
    "PHPUnit\\",
    "SebastianBergmann\\",
    "PharIo\\",
    "DeepCopy\\",
    "TheSeer\\",
    "Pest\\",
    "Doctrine\\Instantiator\\",
    "Composer\\Autoload\\",
    "Samovar\\Testing\\",
};

static void (*inner_execute)(zend_execute_data *frame);
static void (*inner_internal)(zend_execute_data *frame, zval *returned);
static zend_op_array *(*inner_compile_file)(zend_file_handle *file, int type);
static zend_op_array *(*inner_compile_string)(zend_string *text, const char *file,
                                              zend_compile_position position);
static user_opcode_handler_t inner_call;

/* Code of PHPUnit\Framework\TestCase::runBare(), which is one test; NULL: not loaded yet. */
static const void *test_code;
static bool is_test_next;
/* Number of compilations in progress, which may be nested. */
static uint32_t compiling;
/* The code whose next call is that of an original. */
static const void *passing;
/* Running doubles by the address of their frame; NULL before the first one. */
static HashTable *running;

/* ---- which calls --------------------------------------------------------------------------- */

zend_class_entry *samovar_called_class(const zend_execute_data *frame) {
    if (Z_TYPE(frame->This) == IS_OBJECT) {
        return Z_OBJCE(frame->This);
    }
    return frame->func->common.scope ? Z_CE(frame->This) : NULL;
}

static bool is_framework(const zend_function *function) {
    const zend_string *name =
        function->common.scope ? function->common.scope->name : function->common.function_name;
    for (size_t i = 0; name && i < sizeof framework / sizeof framework[0]; i++) {
        if (strncasecmp(ZSTR_VAL(name), framework[i], strlen(framework[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_called_by_framework(const zend_execute_data *caller) {
    for (int i = 0; caller && i < INTERNAL_FRAMES_MAX; i++, caller = caller->prev_execute_data) {
        if (caller->func && caller->func->type != ZEND_INTERNAL_FUNCTION) {
            return is_framework(caller->func);
        }
    }
    return false;
}

static samovar_double *find(const zend_execute_data *frame, const zend_execute_data *caller) {
    samovar_double *d = samovar_double_find(frame->func, samovar_called_class(frame));
    if (d && d->kind == SAMOVAR_DOUBLE_FUNCTION && is_called_by_framework(caller)) {
        return NULL;
    }
    return d;
}

/* The same for a call that begins, which may be that of an original. */
static samovar_double *take(const zend_execute_data *frame) {
    if (passing && passing == samovar_double_key(frame->func)) {
        passing = NULL;
        return NULL;
    }
    return find(frame, frame->prev_execute_data);
}

/* ---- a call of a double -------------------------------------------------------------------- */

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
    if (zend_hash_num_elements(running) >= RUNNING_MAX) {
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

/* ---- in place of PHP code ------------------------------------------------------------------ */

/* The type that the replaced code declares for its result. Code that returns nothing has none. */
static void check_result(const zend_function *function, zval *returned) {
    if (!(function->common.fn_flags & ZEND_ACC_HAS_RETURN_TYPE)) {
        return;
    }
    zend_type *type = &function->common.arg_info[-1].type;
    zval *value = returned;
    ZVAL_DEREF(value);
    if (ZEND_TYPE_PURE_MASK(*type) & (MAY_BE_VOID | MAY_BE_NEVER)) {
        zval_ptr_dtor(returned);
        ZVAL_NULL(returned);
    } else if (!samovar_type_accepts(type, value)) {
        zend_verify_return_error(function, value);
        zval_ptr_dtor(returned);
        ZVAL_UNDEF(returned);
    }
}

/* The end of a frame of PHP code, as the engine's leave helper does it. */
static void leave(zend_execute_data *frame) {
    const uint32_t info = ZEND_CALL_INFO(frame);
    EG(current_execute_data) = frame->prev_execute_data;
    zend_free_compiled_variables(frame);
    if (info & ZEND_CALL_HAS_EXTRA_NAMED_PARAMS) {
        zend_free_extra_named_params(frame->extra_named_params);
    }
    zend_vm_stack_free_extra_args_ex(info, frame);
    if (info & ZEND_CALL_CLOSURE) {
        OBJ_RELEASE(ZEND_CLOSURE_OBJECT(frame->func));
    }
}

static void replace(samovar_double *d, zend_execute_data *frame) {
    zval returned;
    samovar_double_run(d, frame, &returned);
    if (!EG(exception)) {
        check_result(frame->func, &returned);
    }
    if (ZEND_OBSERVER_ENABLED) {
        zend_observer_fcall_end(frame, EG(exception) ? NULL : &returned);
    }
    if (frame->return_value) {
        ZVAL_COPY_VALUE(frame->return_value, &returned);
    } else {
        zval_ptr_dtor(&returned);
    }
    leave(frame);
}

/* ---- hooks --------------------------------------------------------------------------------- */

static void execute(zend_execute_data *frame);
static void execute_internal_function(zend_execute_data *frame, zval *returned);

static void set_hooks(void) {
    if (zend_execute_ex != execute) {
        inner_execute = zend_execute_ex;
        zend_execute_ex = execute;
    }
    if (zend_execute_internal != execute_internal_function) {
        inner_internal = zend_execute_internal;
        zend_execute_internal = execute_internal_function;
    }
}

static void clear_hooks(void) {
    if (zend_execute_ex == execute) {
        zend_execute_ex = inner_execute;
    }
    if (zend_execute_internal == execute_internal_function) {
        zend_execute_internal = inner_internal;
    }
}

void samovar_mock_calls_changed(void) {
    if (samovar_calls_doubled > 0 || compiling > 0) {
        set_hooks();
    } else {
        clear_hooks();
    }
}

/* Runs one test, and removes the doubles that it has added. */
static void run_test(zend_execute_data *frame) {
    const uint64_t number = samovar_mocks_number();
    samovar_mock_calls_changed();
    inner_execute(frame);
    samovar_mocks_restore_after(number);
}

static void execute(zend_execute_data *frame) {
    if (is_test_next) {
        is_test_next = false;
        run_test(frame);
        return;
    }
    const uint32_t info = ZEND_CALL_INFO(frame);
    if (samovar_calls_doubled > 0 && !(info & (ZEND_CALL_CODE | ZEND_CALL_GENERATOR))) {
        samovar_double *d = take(frame);
        if (d) {
            replace(d, frame);
            return;
        }
    }
    inner_execute(frame);
}

static void execute_internal_function(zend_execute_data *frame, zval *returned) {
    samovar_double *d = samovar_calls_doubled > 0 ? take(frame) : NULL;
    if (d) {
        samovar_double_run(d, frame, returned);
        if (Z_ISUNDEF_P(returned)) {
            ZVAL_NULL(returned);
        }
    } else if (inner_internal) {
        inner_internal(frame, returned);
    } else {
        frame->func->internal_function.handler(frame, returned);
    }
}

static int next_handler(zend_execute_data *execute_data) {
    return inner_call ? inner_call(execute_data) : ZEND_USER_OPCODE_DISPATCH;
}

/* ZEND_DO_FCALL: all calls in PHP code. */
static int on_call(zend_execute_data *execute_data) {
    zend_execute_data *callee = EX(call);
    const zend_function *function = callee->func;
    if (function->type != ZEND_USER_FUNCTION) {
        return next_handler(execute_data);
    }
    if (UNEXPECTED(function->op_array.opcodes == test_code)) {
        set_hooks();
        is_test_next = true;
        return next_handler(execute_data);
    }
    if (EXPECTED(zend_execute_ex != execute) || inner_execute != execute_ex ||
        ZEND_OBSERVER_ENABLED || (function->common.fn_flags & SPECIAL_FLAGS) ||
        (function->common.fn_flags & ZEND_ACC_CALL_VIA_TRAMPOLINE) ||
        (ZEND_CALL_INFO(callee) & ZEND_CALL_MAY_HAVE_UNDEF) || inner_call ||
        find(callee, execute_data)) {
        return next_handler(execute_data);
    }
    /* The engine's own handler would call the hook, and so use the C stack. */
    const zend_op *opline = EX(opline);
    EX(call) = callee->prev_execute_data;
    zend_init_func_execute_data(callee, &callee->func->op_array,
                                opline->result_type == IS_UNUSED ? NULL
                                                                 : EX_VAR(opline->result.var));
    return ZEND_USER_OPCODE_ENTER;
}

/* ---- the compiler -------------------------------------------------------------------------- */

static void look_for_tests(void) {
    const zend_class_entry *ce =
        zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("phpunit\\framework\\testcase"));
    const zend_function *f =
        ce ? zend_hash_str_find_ptr(&ce->function_table, ZEND_STRL("runbare")) : NULL;
    test_code = f && f->type == ZEND_USER_FUNCTION ? f->op_array.opcodes : NULL;
}

/* Every call must be visible, and no constant may be copied into the code. */
static void prepare_compiler(void) {
    CG(compiler_options) |= ZEND_COMPILE_NO_BUILTINS | ZEND_COMPILE_NO_CONSTANT_SUBSTITUTION |
                            ZEND_COMPILE_NO_PERSISTENT_CONSTANT_SUBSTITUTION;
    if (!test_code) {
        look_for_tests();
    }
    compiling++;
    set_hooks();
}

static void end_compilation(void) {
    compiling--;
    samovar_mock_calls_changed();
}

static zend_op_array *compile_file_with_hooks(zend_file_handle *file, int type) {
    prepare_compiler();
    zend_op_array *code = inner_compile_file(file, type);
    end_compilation();
    return code;
}

static zend_op_array *compile_string_with_hooks(zend_string *text, const char *file,
                                                zend_compile_position position) {
    prepare_compiler();
    zend_op_array *code = inner_compile_string(text, file, position);
    end_compilation();
    return code;
}

/* ---- originals ----------------------------------------------------------------------------- */

void samovar_original_call(zend_function *function, zend_object *object, zend_class_entry *called,
                           zval *returned, uint32_t count, zval *arguments, HashTable *named) {
    zend_fcall_info info = {.size = sizeof info, .retval = returned, .params = arguments};
    zend_fcall_info_cache cache;
    memset(&cache, 0, sizeof cache);
    ZVAL_UNDEF(&info.function_name);
    info.param_count = count;
    info.named_params = named;
    info.object = object;
    cache.function_handler = function;
    cache.object = object;
    cache.called_scope = called;
    passing = samovar_calls_doubled > 0 ? samovar_double_key(function) : NULL;
    zend_call_function(&info, &cache);
    passing = NULL;
}

/* ---- start and end ------------------------------------------------------------------------- */

void samovar_mock_calls_startup(void) {
    inner_compile_file = zend_compile_file;
    inner_compile_string = zend_compile_string;
    zend_compile_file = compile_file_with_hooks;
    zend_compile_string = compile_string_with_hooks;
    inner_call = zend_get_user_opcode_handler(ZEND_DO_FCALL);
    zend_set_user_opcode_handler(ZEND_DO_FCALL, on_call);
}

void samovar_mock_calls_end(void) {
    compiling = 0;
    clear_hooks();
    passing = NULL;
    is_test_next = false;
    test_code = NULL;
    if (running) {
        zend_hash_destroy(running);
        FREE_HASHTABLE(running);
        running = NULL;
    }
}
