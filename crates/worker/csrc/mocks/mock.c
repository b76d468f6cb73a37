/* The class Samovar\Mock: arguments, checks and errors. */
#include "mocks/mocks.h"
#include "mocks/calls.h"
#include "mocks/constants.h"
#include "mocks/doubles.h"
#include "mocks/exits.h"
#include "mocks/lookup.h"
#include "mocks/makers.h"
#include "mocks/running.h"
#include "sapi/run_state.h"
#include <zend_closures.h>
#include <zend_exceptions.h>
#include "functions/arginfo/mock.h"

static zend_class_entry *mock_class;

/* Throws if this run has no doubles. */
static bool is_on(void) {
    if (samovar_settings->mocks != SAMOVAR_MOCKS_ON) {
        zend_throw_error(NULL, "Samovar\\Mock is off in this run\n"
                               "hint: run the tests with `samovar test --mocks`");
        return false;
    }
    return true;
}

/* Returns a copy of a name without the backslash in front of it. */
static zend_string *plain(const zend_string *name) {
    const bool has = ZSTR_LEN(name) > 0 && ZSTR_VAL(name)[0] == '\\';
    return zend_string_init(ZSTR_VAL(name) + has, ZSTR_LEN(name) - has, 0);
}

static const zend_internal_function *variadic(void) {
    return zend_hash_str_find_ptr(&mock_class->function_table, ZEND_STRL("original"));
}

/* ---- adding doubles ------------------------------------------------------------------------ */

/* A closure's code; NULL: the callable names a function or method. */
static zend_function *closure_code(zval *callable) {
    if (Z_TYPE_P(callable) != IS_OBJECT || Z_OBJCE_P(callable) != zend_ce_closure) {
        return NULL;
    }
    zend_function *code = (zend_function *)zend_get_closure_method_def(Z_OBJ_P(callable));
    const bool is_written =
        code->type == ZEND_USER_FUNCTION && !(code->common.fn_flags & ZEND_ACC_FAKE_CLOSURE);
    return is_written ? code : NULL;
}

/* A parameter by reference would get a copy if the replaced code takes a value. */
static bool takes_same_references(zend_function *code, zend_function *replaced,
                                  const zend_string *target) {
    for (uint32_t i = 1; code && i <= code->common.num_args; i++) {
        if (ARG_MUST_BE_SENT_BY_REF(code, i) && !ARG_SHOULD_BE_SENT_BY_REF(replaced, i)) {
            zend_throw_error(NULL,
                             "The double of `%s` takes its parameter %u by reference, but the "
                             "replaced code takes a value\nhint: remove the `&`",
                             ZSTR_VAL(target), i);
            return false;
        }
    }
    return true;
}

static void add(samovar_kind kind, zend_class_entry *ce, zend_function *replaced,
                zend_string *target, zval *double_) {
    zend_function *code = closure_code(double_);
    zval callable;
    const bool is_bound = kind == SAMOVAR_DOUBLE_METHOD && code;
    if (!takes_same_references(code, replaced, target)) {
        zend_string_release(target);
        return;
    }
    if (is_bound && (replaced->common.fn_flags & ZEND_ACC_STATIC) &&
        (code->common.fn_flags & ZEND_ACC_USES_THIS) &&
        !(code->common.fn_flags & ZEND_ACC_STATIC)) {
        zend_throw_error(NULL,
                         "The double of the static method `%s` uses $this\n"
                         "hint: pass values to the closure with `use`",
                         ZSTR_VAL(target));
        zend_string_release(target);
        return;
    }
    if (is_bound && !(ce->ce_flags & ZEND_ACC_TRAIT)) {
        zend_create_closure(&callable, code, replaced->common.scope, ce, NULL);
    } else {
        ZVAL_COPY(&callable, double_);
    }
    samovar_double *d =
        samovar_double_add(kind, samovar_double_key(replaced), ce, replaced, target, &callable);
    if (d) {
        d->is_bound = is_bound;
    }
    samovar_mock_calls_changed();
}

static ZEND_METHOD(Samovar_Mock, function) {
    zend_string *name;
    zval *callable;
    zend_fcall_info info;
    zend_fcall_info_cache cache;
    ZEND_PARSE_PARAMETERS_START(2, 2)
    Z_PARAM_STR(name)
    Z_PARAM_FUNC(info, cache)
    ZEND_PARSE_PARAMETERS_END();
    callable = ZEND_CALL_ARG(execute_data, 2);
    if (!is_on()) {
        RETURN_THROWS();
    }
    zend_string *target = plain(name);
    zend_function *replaced = samovar_mock_function(target, variadic());
    if (replaced && samovar_mock_depends_on_caller(target)) {
        zend_throw_error(NULL,
                         "`%s` depends on the variables of its caller, and cannot be replaced\n"
                         "hint: replace the function or method that calls it",
                         ZSTR_VAL(target));
        replaced = NULL;
    }
    if (replaced) {
        add(SAMOVAR_DOUBLE_FUNCTION, NULL, replaced, target, callable);
    } else {
        zend_string_release(target);
    }
}

static ZEND_METHOD(Samovar_Mock, method) {
    zend_string *class_name, *name;
    zend_fcall_info info;
    zend_fcall_info_cache cache;
    ZEND_PARSE_PARAMETERS_START(3, 3)
    Z_PARAM_STR(class_name)
    Z_PARAM_STR(name)
    Z_PARAM_FUNC(info, cache)
    ZEND_PARSE_PARAMETERS_END();
    zend_class_entry *ce = is_on() ? samovar_mock_class(class_name) : NULL;
    if (ce == mock_class && ce) {
        zend_throw_error(NULL, "Methods of Samovar\\Mock cannot be replaced\n"
                               "hint: replace the code that calls them");
        RETURN_THROWS();
    }
    zend_function *replaced = ce ? samovar_mock_method(ce, name) : NULL;
    if (replaced) {
        zend_string *target = zend_strpprintf(0, "%s::%s", ZSTR_VAL(ce->name), ZSTR_VAL(name));
        add(SAMOVAR_DOUBLE_METHOD, ce, replaced, target, ZEND_CALL_ARG(execute_data, 3));
    }
}

static ZEND_METHOD(Samovar_Mock, new) {
    zend_string *class_name;
    zend_fcall_info info;
    zend_fcall_info_cache cache;
    zval callable;
    ZEND_PARSE_PARAMETERS_START(2, 2)
    Z_PARAM_STR(class_name)
    Z_PARAM_FUNC(info, cache)
    ZEND_PARSE_PARAMETERS_END();
    zend_class_entry *ce = is_on() ? samovar_mock_class(class_name) : NULL;
    if (!ce) {
        RETURN_THROWS();
    }
    zend_string *target = zend_strpprintf(0, "new %s", ZSTR_VAL(ce->name));
    ZVAL_COPY(&callable, ZEND_CALL_ARG(execute_data, 2));
    samovar_double *d = samovar_double_add(SAMOVAR_DOUBLE_NEW, ce, ce, NULL, target, &callable);
    if (d) {
        samovar_maker_prepare(d, variadic());
    }
}

static ZEND_METHOD(Samovar_Mock, constant) {
    zend_string *name;
    zval *value;
    ZEND_PARSE_PARAMETERS_START(2, 2)
    Z_PARAM_STR(name)
    Z_PARAM_ZVAL(value)
    ZEND_PARSE_PARAMETERS_END();
    if (is_on()) {
        zend_string *target = plain(name);
        samovar_constant_replace(target, value);
        zend_string_release(target);
    }
}

/* ---- originals ----------------------------------------------------------------------------- */

static ZEND_METHOD(Samovar_Mock, original) {
    uint32_t count;
    zval *arguments;
    HashTable *named;
    samovar_double *d;
    ZEND_PARSE_PARAMETERS_START(0, -1)
    Z_PARAM_VARIADIC_WITH_NAMED(arguments, count, named)
    ZEND_PARSE_PARAMETERS_END();
    if (!is_on()) {
        RETURN_THROWS();
    }
    zend_execute_data *frame = samovar_double_running(&d);
    if (!frame) {
        zend_throw_error(NULL, "Samovar\\Mock::original() was called outside of a double\n"
                               "hint: use Samovar\\Mock::callOriginal()");
        RETURN_THROWS();
    }
    if (d->kind == SAMOVAR_DOUBLE_NEW) {
        samovar_make_original(d, return_value, count, arguments, named);
    } else {
        samovar_original_call(frame->func,
                              Z_TYPE(frame->This) == IS_OBJECT ? Z_OBJ(frame->This) : NULL,
                              samovar_called_class(frame), return_value, count, arguments, named);
    }
    if (Z_ISUNDEF_P(return_value)) {
        ZVAL_NULL(return_value);
    } else if (Z_ISREF_P(return_value)) {
        zend_unwrap_reference(return_value);
    }
}

/* Code that callOriginal() names. */
typedef struct {
    zend_function *function;
    zend_object *object;
    zend_class_entry *called;
} original;

static original method_of(zend_class_entry *ce, zend_object *object, zend_string *name) {
    original found = {
        .function = ce ? samovar_mock_method(ce, name) : NULL, .object = object, .called = ce};
    if (found.function && (found.function->common.fn_flags & ZEND_ACC_STATIC)) {
        found.object = NULL;
    } else if (found.function && !object) {
        zend_throw_error(NULL,
                         "The method `%s::%s` needs an object\n"
                         "hint: name it as [$object, '%s']",
                         ZSTR_VAL(ce->name), ZSTR_VAL(name), ZSTR_VAL(name));
        found.function = NULL;
    }
    return found;
}

static original named_original(zend_string *name) {
    const char *at = zend_memnstr(ZSTR_VAL(name), "::", 2, ZSTR_VAL(name) + ZSTR_LEN(name));
    if (!at) {
        zend_string *target = plain(name);
        original found = {.function = samovar_mock_function(target, variadic())};
        zend_string_release(target);
        return found;
    }
    zend_string *class_name = zend_string_init(ZSTR_VAL(name), at - ZSTR_VAL(name), 0);
    zend_string *method = zend_string_init(at + 2, strlen(at + 2), 0);
    original found = method_of(samovar_mock_class(class_name), NULL, method);
    zend_string_release(class_name);
    zend_string_release(method);
    return found;
}

static original original_of(HashTable *parts) {
    zval *first = zend_hash_index_find_deref(parts, 0);
    zval *second = zend_hash_index_find_deref(parts, 1);
    if (!first || !second || Z_TYPE_P(second) != IS_STRING ||
        (Z_TYPE_P(first) != IS_OBJECT && Z_TYPE_P(first) != IS_STRING)) {
        zend_throw_error(NULL, "The array names no method\nhint: use [$object, 'name'] or "
                               "[Foo::class, 'name']");
        return (original){.function = NULL};
    }
    if (Z_TYPE_P(first) == IS_OBJECT) {
        return method_of(Z_OBJCE_P(first), Z_OBJ_P(first), Z_STR_P(second));
    }
    return method_of(samovar_mock_class(Z_STR_P(first)), NULL, Z_STR_P(second));
}

static ZEND_METHOD(Samovar_Mock, callOriginal) {
    zend_string *name = NULL;
    HashTable *parts = NULL, *given = NULL, *named = NULL;
    zval *arguments = NULL, *value;
    zend_string *key;
    uint32_t count = 0;
    ZEND_PARSE_PARAMETERS_START(1, 2)
    Z_PARAM_ARRAY_HT_OR_STR(parts, name)
    Z_PARAM_OPTIONAL
    Z_PARAM_ARRAY_HT(given)
    ZEND_PARSE_PARAMETERS_END();
    if (!is_on()) {
        RETURN_THROWS();
    }
    const original found = parts ? original_of(parts) : named_original(name);
    if (!found.function) {
        RETURN_THROWS();
    }
    if (given) {
        arguments = safe_emalloc(zend_hash_num_elements(given) + 1, sizeof(zval), 0);
        ZEND_HASH_FOREACH_STR_KEY_VAL(given, key, value) {
            if (!key) {
                ZVAL_COPY_VALUE(&arguments[count++], value);
                continue;
            }
            if (!named) {
                named = zend_new_array(zend_hash_num_elements(given));
            }
            Z_TRY_ADDREF_P(value);
            zend_hash_update(named, key, value);
        }
        ZEND_HASH_FOREACH_END();
    }
    samovar_original_call(found.function, found.object, found.called, return_value, count,
                          arguments, named);
    if (arguments) {
        efree(arguments);
    }
    if (named) {
        zend_array_release(named);
    }
    if (Z_ISUNDEF_P(return_value)) {
        ZVAL_NULL(return_value);
    } else if (Z_ISREF_P(return_value)) {
        zend_unwrap_reference(return_value);
    }
}

/* ---- records and restoration --------------------------------------------------------------- */

static ZEND_METHOD(Samovar_Mock, calls) {
    zend_string *name;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_STR(name)
    ZEND_PARSE_PARAMETERS_END();
    if (!is_on()) {
        RETURN_THROWS();
    }
    zend_string *target = plain(name);
    const samovar_double *d = samovar_double_named(target);
    if (!d) {
        zend_throw_error(NULL,
                         "There is no double of `%s`\n"
                         "hint: name it as `time`, `Foo::bar` or `new Foo`, before it is restored",
                         ZSTR_VAL(target));
    } else if (d->called > SAMOVAR_DOUBLE_RECORDED_MAX) {
        zend_throw_error(NULL,
                         "The double of `%s` was called " ZEND_ULONG_FMT
                         " times; only %d calls are recorded\nhint: count in the double itself",
                         ZSTR_VAL(target), d->called, SAMOVAR_DOUBLE_RECORDED_MAX);
    } else {
        ZVAL_COPY(return_value, &d->calls);
    }
    zend_string_release(target);
}

static ZEND_METHOD(Samovar_Mock, restore) {
    zend_string *name;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_STR(name)
    ZEND_PARSE_PARAMETERS_END();
    if (is_on()) {
        zend_string *target = plain(name);
        samovar_doubles_remove_named(target);
        samovar_constants_restore_named(target);
        samovar_mock_calls_changed();
        zend_string_release(target);
    }
}

static ZEND_METHOD(Samovar_Mock, restoreAll) {
    ZEND_PARSE_PARAMETERS_NONE();
    if (is_on()) {
        samovar_mocks_restore_after(0);
    }
}

/* ---- start and end ------------------------------------------------------------------------- */

uint64_t samovar_mocks_number(void) {
    return samovar_double_last_number();
}

void samovar_mocks_restore_after(uint64_t number) {
    samovar_doubles_remove_after(number);
    samovar_constants_restore_after(number);
    samovar_mock_calls_changed();
}

void samovar_mock_class_startup(void) {
    if (samovar_settings->mocks == SAMOVAR_MOCKS_NONE) {
        return;
    }
    zend_class_entry type;
    INIT_CLASS_ENTRY(type, "Samovar\\Mock", samovar_methods);
    mock_class = zend_register_internal_class(&type);
    mock_class->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NO_DYNAMIC_PROPERTIES;
}

void samovar_mocks_startup(void) {
    if (samovar_settings->mocks == SAMOVAR_MOCKS_ON) {
        samovar_mock_calls_startup();
        samovar_makers_startup();
        samovar_exits_startup();
        samovar_mock_constants_startup();
    }
}

void samovar_mocks_end(void) {
    if (samovar_settings->mocks == SAMOVAR_MOCKS_ON) {
        samovar_mocks_restore_after(0);
        samovar_constants_end();
        samovar_mock_calls_end();
        samovar_doubles_end();
    }
}
