/* Functions, classes and methods by name, with errors that say how to name them. */
#include "mocks/lookup.h"
#include "mocks/exits.h"
#include <zend_exceptions.h>

/* Constructs of the language that look like functions. */
static const char *const constructs[] = {
    "array",   "declare",      "die",          "echo",  "empty", "eval",  "exit", "fn",
    "clone",   "include",      "include_once", "isset", "list",  "match", "new",  "print",
    "require", "require_once", "return",       "throw", "unset", "yield", "goto", "static",
};
/* Functions that read or write variables of their caller, which would be the double. */
static const char *const of_caller[] = {
    "compact",       "extract",          "func_get_arg",     "func_get_args",
    "func_num_args", "get_called_class", "get_defined_vars",
};

static bool is_in(const char *const *list, size_t count, const zend_string *name) {
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(ZSTR_VAL(name), list[i]) == 0) {
            return true;
        }
    }
    return false;
}
#define IS_IN(list, name) is_in(list, sizeof(list) / sizeof(list)[0], name)

static void *find_lower(const HashTable *table, zend_string *name) {
    zend_string *lower = zend_string_tolower(name);
    void *found = zend_hash_find_ptr(table, lower);
    zend_string_release(lower);
    return found;
}

zend_function *samovar_mock_function(zend_string *name, const zend_internal_function *variadic) {
    zend_function *f = find_lower(EG(function_table), name);
    if (!f && zend_string_equals_literal_ci(name, "exit")) {
        f = samovar_exit_function(variadic);
    }
    if (f) {
        return f;
    }
    if (IS_IN(constructs, name)) {
        zend_throw_error(NULL,
                         "`%s` is a construct of the language, which cannot be replaced\n"
                         "hint: move it into a function or method, and replace that",
                         ZSTR_VAL(name));
    } else {
        zend_throw_error(NULL,
                         "There is no function `%s`\n"
                         "hint: write the name with its namespace, and load the file that defines "
                         "it first",
                         ZSTR_VAL(name));
    }
    return NULL;
}

zend_class_entry *samovar_mock_class(zend_string *name) {
    zend_class_entry *ce = zend_lookup_class(name);
    if (!ce && !EG(exception)) {
        zend_throw_error(NULL,
                         "There is no class `%s`\n"
                         "hint: check the name, or load the file that defines the class",
                         ZSTR_VAL(name));
    }
    return ce;
}

zend_function *samovar_mock_method(zend_class_entry *ce, zend_string *name) {
    zend_function *f = find_lower(&ce->function_table, name);
    if (!f) {
        zend_throw_error(NULL, "The class `%s` has no method `%s`\nhint: %s", ZSTR_VAL(ce->name),
                         ZSTR_VAL(name),
                         ce->__call || ce->__callstatic
                             ? "it is served by __call() or __callStatic(): replace that"
                             : "check the name");
    } else if (f->common.fn_flags & ZEND_ACC_ABSTRACT) {
        zend_throw_error(NULL,
                         "The method `%s::%s` is abstract\n"
                         "hint: replace it in a class that implements it",
                         ZSTR_VAL(ce->name), ZSTR_VAL(name));
        return NULL;
    }
    return f;
}

bool samovar_mock_depends_on_caller(const zend_string *name) {
    return IS_IN(of_caller, name);
}
