/* Exceptions and fatal errors → the accounting of the request.
 *
 * A framework catches an exception, frees it and renders a page: at the end of the request there
 * is no object to look at. So the hook for throws copies the last exception thrown. A request
 * that throws nothing does no work here. Whether the response is a 5xx is known when the report is
 * written (report.c). The copies are in the accounting's shared memory, which
 * no rollback changes. No function here runs code of the application or allocates memory. */
#include "insight/errors.h"
#include "boundary.h"
#include <php_main.h>
#include <zend_exceptions.h>
#include <zend_observer.h>
#include <stdio.h>
#include <string.h>

/* Properties that Exception and Error declare; classes below them keep the offsets. */
typedef enum { MESSAGE, FILE_NAME, LINE, TRACE, PREVIOUS, PROPERTIES } property;

static uint32_t offsets[2][PROPERTIES]; /* of Exception, of Error; 0: unknown */
static void (*original_throw_hook)(zend_object *exception);

/* ---- texts --------------------------------------------------------------------------------- */

typedef struct {
    char *at;
    size_t len, room;
} text_buffer;

static void append(text_buffer *to, const char *text, size_t len) {
    to->len += samovar_utf8_copy(to->at + to->len, to->room - to->len, text, len);
}

static void append_string(text_buffer *to, const zend_string *text) {
    append(to, ZSTR_VAL(text), ZSTR_LEN(text));
}

static void set_file(short_name *to, const char *name, size_t len) {
    const size_t cut = len > NAME_BYTES ? len - NAME_BYTES : 0;
    samovar_short_name(to, name + cut, len - cut);
}

static void set_message(error_origin *to, const char *message, size_t len) {
    to->message_len = (uint16_t)samovar_utf8_copy(to->message, MESSAGE_BYTES, message, len);
}

/* Appends the line of one frame: `#0 /srv/Shop.php(12): Shop->show()`. */
static void append_frame(text_buffer *to, int number, const zend_string *file, zend_long line,
                         const zend_string *class, const char *type, const zend_string *function) {
    char digits[32];
    append(to, digits, (size_t)snprintf(digits, sizeof digits, number ? "\n#%d " : "#%d ", number));
    if (file) {
        append_string(to, file);
        append(to, digits, (size_t)snprintf(digits, sizeof digits, "(%lld): ", (long long)line));
    } else {
        append(to, "[internal function]: ", strlen("[internal function]: "));
    }
    if (class) {
        append(to, ZSTR_VAL(class), strlen(ZSTR_VAL(class)));
        append(to, type, strlen(type));
    }
    append_string(to, function);
    append(to, "()", 2);
}

/* ---- an exception -------------------------------------------------------------------------- */

static const zval *property_of(const zend_object *exception, property which) {
    const bool is_error = instanceof_function(exception->ce, zend_ce_error);
    const uint32_t offset = offsets[is_error][which];
    if (offset == 0) {
        return NULL;
    }
    const zval *value = OBJ_PROP(exception, offset);
    ZVAL_DEREF(value);
    return value;
}

static const zend_string *text_property(const zend_object *exception, property which) {
    const zval *value = property_of(exception, which);
    return value && Z_TYPE_P(value) == IS_STRING ? Z_STR_P(value) : ZSTR_EMPTY_ALLOC();
}

static void describe_origin(error_origin *to, const zend_object *exception) {
    const zend_string *message = text_property(exception, MESSAGE);
    const zend_string *file = text_property(exception, FILE_NAME);
    const zval *line = property_of(exception, LINE);
    /* The name of an anonymous class ends at a null byte, and its place follows. */
    samovar_short_name(&to->class, ZSTR_VAL(exception->ce->name),
                       strlen(ZSTR_VAL(exception->ce->name)));
    set_file(&to->file, ZSTR_VAL(file), ZSTR_LEN(file));
    set_message(to, ZSTR_VAL(message), ZSTR_LEN(message));
    to->line = line && Z_TYPE_P(line) == IS_LONG ? (uint32_t)Z_LVAL_P(line) : 0;
}

static const zval *element(HashTable *frame, const char *name, zend_uchar type) {
    const zval *value = zend_hash_str_find_deref(frame, name, strlen(name));
    return value && Z_TYPE_P(value) == type ? value : NULL;
}

/* Writes the stack as it was when the exception was created. */
static void describe_stack(error_record *to, const zend_object *exception) {
    text_buffer stack = {.at = to->stack, .room = STACK_BYTES};
    const zval *trace = property_of(exception, TRACE);
    int number = 0;
    if (trace && Z_TYPE_P(trace) == IS_ARRAY) {
        const zval *frame;
        ZEND_HASH_FOREACH_VAL(Z_ARRVAL_P(trace), frame) {
            if (Z_TYPE_P(frame) != IS_ARRAY || number == FRAMES_MAX) {
                break;
            }
            const zval *file = element(Z_ARRVAL_P(frame), "file", IS_STRING);
            const zval *line = element(Z_ARRVAL_P(frame), "line", IS_LONG);
            const zval *class = element(Z_ARRVAL_P(frame), "class", IS_STRING);
            const zval *type = element(Z_ARRVAL_P(frame), "type", IS_STRING);
            const zval *function = element(Z_ARRVAL_P(frame), "function", IS_STRING);
            append_frame(&stack, number++, file ? Z_STR_P(file) : NULL, line ? Z_LVAL_P(line) : 0,
                         class ? Z_STR_P(class) : NULL, type ? Z_STRVAL_P(type) : "->",
                         function ? Z_STR_P(function) : ZSTR_EMPTY_ALLOC());
        }
        ZEND_HASH_FOREACH_END();
    }
    to->stack_len = (uint16_t)stack.len;
}

static void describe(error_record *to, const zend_object *exception) {
    describe_origin(&to->origin, exception);
    describe_stack(to, exception);
    to->previous_count = 0;
    while (to->previous_count < PREVIOUS_MAX) {
        const zval *previous = property_of(exception, PREVIOUS);
        if (!previous || Z_TYPE_P(previous) != IS_OBJECT) {
            return;
        }
        exception = Z_OBJ_P(previous);
        describe_origin(&to->previous[to->previous_count++], exception);
    }
}

/* ---- throws -------------------------------------------------------------------------------- */

/* Returns whether a `try` with a `catch` is around the operation that this frame runs. */
static bool may_catch(const zend_execute_data *frame) {
    const zend_op_array *code = &frame->func->op_array;
    const zend_op *at = frame->opline;
    if (at && at->opcode == ZEND_HANDLE_EXCEPTION) {
        at = EG(opline_before_exception);
    }
    if (!at || at < code->opcodes || at >= code->opcodes + code->last) {
        return false;
    }
    const uint32_t number = (uint32_t)(at - code->opcodes);
    for (int i = 0; i < code->last_try_catch; i++) {
        const zend_try_catch_element *block = &code->try_catch_array[i];
        if (block->catch_op && block->try_op <= number && number < block->catch_op) {
            return true;
        }
    }
    return false;
}

/* Classes of `catch` clauses are not compared: a `catch` of another class counts as well, and the
 * exception is then the one that was thrown last. An exception that leaves a fiber is thrown once
 * more, where the fiber was resumed. */
static bool is_unhandled(void) {
    if (EG(current_fiber_context) != EG(main_fiber_context)) {
        return false;
    }
    const zend_execute_data *frame = EG(current_execute_data);
    for (; frame; frame = frame->prev_execute_data) {
        if (frame->func && ZEND_USER_CODE(frame->func->type) && may_catch(frame)) {
            return false;
        }
    }
    return true;
}

/* An exception that no `catch` handles ends the work of the application. A later exception,
 * thrown while its handler renders a page, is not the reason for that page. */
static void look_at_throw(zend_object *exception) {
    request_accounting_state *l = samovar_request_accounting_now();
    if (l && exception && !zend_is_unwind_exit(exception) && !zend_is_graceful_exit(exception)) {
        const bool unhandled = is_unhandled();
        if (unhandled || !l->thrown_is_unhandled) {
            describe(&l->thrown, exception);
            l->has_thrown = true;
            l->thrown_is_unhandled = unhandled;
        }
    }
    if (original_throw_hook) {
        original_throw_hook(exception);
    }
}

/* ---- records ------------------------------------------------------------------------------- */

static error_record *next_record(request_accounting_state *l, error_kind kind) {
    if (l->error_count == ERRORS_MAX) {
        l->dropped++;
        return NULL;
    }
    error_record *record = &l->errors[l->error_count++];
    record->kind = kind;
    record->stack_len = record->previous_count = 0;
    return record;
}

static void record_thrown(request_accounting_state *l, error_kind kind) {
    error_record *record = next_record(l, kind);
    if (record) {
        *record = l->thrown;
        record->kind = kind;
    }
    l->has_thrown = false;
}

/* Returns whether PHP's message `Uncaught …` is about the exception that was thrown last. The
 * message begins with its first previous exception, but the position is its own. */
static bool is_of_thrown(const request_accounting_state *l, const zend_string *file, uint32_t line,
                         const zend_string *message) {
    static const char uncaught[] = "Uncaught ";
    if (!l->has_thrown || l->thrown.origin.line != line || ZSTR_LEN(message) < sizeof uncaught ||
        memcmp(ZSTR_VAL(message), uncaught, sizeof uncaught - 1) != 0) {
        return false;
    }
    short_name name = {.len = 0};
    if (file) {
        set_file(&name, ZSTR_VAL(file), ZSTR_LEN(file));
    }
    const short_name *thrown = &l->thrown.origin.file;
    return name.len == thrown->len && memcmp(name.text, thrown->text, name.len) == 0;
}

static const char *name_of(int type) {
    switch (type) {
    case E_PARSE:
        return "E_PARSE";
    case E_CORE_ERROR:
        return "E_CORE_ERROR";
    case E_COMPILE_ERROR:
        return "E_COMPILE_ERROR";
    case E_USER_ERROR:
        return "E_USER_ERROR";
    case E_RECOVERABLE_ERROR:
        return "E_RECOVERABLE_ERROR";
    default:
        return "E_ERROR";
    }
}

/* Writes the stack of the running code. */
static void describe_running(error_record *to) {
    text_buffer stack = {.at = to->stack, .room = STACK_BYTES};
    int number = 0;
    const zend_execute_data *frame = EG(current_execute_data);
    for (; frame && number < FRAMES_MAX; frame = frame->prev_execute_data) {
        if (!frame->func || !frame->func->common.function_name) {
            continue;
        }
        const zend_execute_data *caller = frame->prev_execute_data;
        const bool is_code = caller && caller->func && ZEND_USER_CODE(caller->func->type);
        const zend_class_entry *class = frame->func->common.scope;
        append_frame(&stack, number++, is_code ? caller->func->op_array.filename : NULL,
                     is_code && caller->opline ? caller->opline->lineno : 0,
                     class ? class->name : NULL,
                     frame->func->common.fn_flags & ZEND_ACC_STATIC ? "::" : "->",
                     frame->func->common.function_name);
    }
    to->stack_len = (uint16_t)stack.len;
}

/* Does not allocate: the memory may be exhausted. */
static void record_fatal(request_accounting_state *l, int type, const zend_string *file,
                         uint32_t line, const zend_string *message) {
    if (is_of_thrown(l, file, line, message)) {
        record_thrown(l, ERROR_UNCAUGHT);
        return;
    }
    error_record *record = next_record(l, ERROR_FATAL);
    if (!record) {
        return;
    }
    const char *name = name_of(type);
    samovar_short_name(&record->origin.class, name, strlen(name));
    set_message(&record->origin, ZSTR_VAL(message), ZSTR_LEN(message));
    record->origin.file.len = 0;
    if (file) {
        set_file(&record->origin.file, ZSTR_VAL(file), ZSTR_LEN(file));
    }
    record->origin.line = line;
    describe_running(record);
}

void samovar_errors_report(zend_object *exception) {
    request_accounting_state *l = samovar_request_accounting_now();
    error_record *record = l ? next_record(l, ERROR_REPORTED) : NULL;
    if (record) {
        describe(record, exception);
    }
}

/* ---- errors of PHP ------------------------------------------------------------------------- */

static void (*original_error_cb)(int type, zend_string *file, const uint32_t line,
                                 zend_string *message);

/* Records errors that no handler of the application has handled. Fatal ones end the request. */
static void look_at_error(int type, zend_string *file, const uint32_t line, zend_string *message) {
    const int fatal =
        E_ERROR | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR | E_PARSE;
    request_accounting_state *l = samovar_request_accounting_now();
    if (type & fatal) {
        samovar_request_failed();
    }
    if (l && (type & fatal)) {
        const bool overtime = PG(connection_status) & PHP_CONNECTION_TIMEOUT;
        l->ending = overtime ? ENDING_OVERTIME : ENDING_FATAL;
        record_fatal(l, type & fatal, file, line, message);
    }
    original_error_cb(type, file, line, message);
}

/* ---- messages ------------------------------------------------------------------------------ */

/* Counts each message that PHP reports, also one that a handler of the application handles.
 * Messages excluded with `@` or error_reporting() do not count. */
static void count_message(int type, zend_string *file, uint32_t line, zend_string *message) {
    (void)file, (void)line, (void)message;
    const int warnings = E_WARNING | E_CORE_WARNING | E_COMPILE_WARNING | E_USER_WARNING;
    const int notices = E_NOTICE | E_USER_NOTICE | (1 << 11); /* E_STRICT, deprecated since 8.4 */
    type &= E_ALL | (1 << 11);
    if (type & EG(error_reporting)) {
        samovar_count_message(type & warnings                             ? MESSAGE_WARNING
                              : type & notices                            ? MESSAGE_NOTICE
                              : type & (E_DEPRECATED | E_USER_DEPRECATED) ? MESSAGE_DEPRECATED
                                                                          : MESSAGE_ERROR);
    }
}

/* ---- start --------------------------------------------------------------------------------- */

void samovar_errors_startup(void) {
    static const char *const names[PROPERTIES] = {"message", "file", "line", "trace", "previous"};
    const zend_class_entry *const classes[2] = {zend_ce_exception, zend_ce_error};
    for (size_t c = 0; c < 2; c++) {
        for (size_t i = 0; i < PROPERTIES; i++) {
            const zend_property_info *found =
                zend_hash_str_find_ptr(&classes[c]->properties_info, names[i], strlen(names[i]));
            offsets[c][i] = found ? found->offset : 0;
        }
    }
    original_throw_hook = zend_throw_exception_hook;
    zend_throw_exception_hook = look_at_throw;
    original_error_cb = zend_error_cb;
    zend_error_cb = look_at_error;
    zend_observer_error_register(count_message);
}
