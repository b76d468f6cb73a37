/* The engine's hooks for calls.
 *
 * Code is compiled while zend_execute_ex and zend_execute_internal are set, so that each call is a
 * ZEND_DO_FCALL, whose handler reads both. At run time they are set only while there are doubles.
 * Calls of functions without a double then use the C stack no more than before: on_call() enters
 * them, as the engine's own handler does without hooks. */
#include "mocks/calls.h"
#include "mocks/mocks.h"
#include "mocks/running.h"
#include "compat.h"
#include <zend_closures.h>
#include <zend_compile.h>
#include <zend_exceptions.h>
#include <zend_interfaces.h>
#include <zend_observer.h>
#include <zend_vm.h>

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
/* A closure whose double has returned; NULL: none. */
static zend_object *finished;
/* Number of compilations in progress, which may be nested. */
static uint32_t compiling;
/* The code whose next call is that of an original. */
static const void *passing;

/* ---- which calls --------------------------------------------------------------------------- */

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

/* The handler of a closure of an internal function releases the closure. This one is released after
 * the next such call, when its frame is gone. */
static void release_later(const zend_execute_data *frame) {
    zend_object *before = finished;
    finished = ZEND_CALL_INFO(frame) & ZEND_CALL_CLOSURE ? ZEND_CLOSURE_OBJECT(frame->func) : NULL;
    if (before) {
        OBJ_RELEASE(before);
    }
}

static void execute_internal_function(zend_execute_data *frame, zval *returned) {
    samovar_double *d = samovar_calls_doubled > 0 ? take(frame) : NULL;
    if (d) {
        samovar_double_run(d, frame, returned);
        release_later(frame);
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
    if (finished) {
        OBJ_RELEASE(finished);
        finished = NULL;
    }
    clear_hooks();
    passing = NULL;
    is_test_next = false;
    test_code = NULL;
    samovar_running_end();
}
