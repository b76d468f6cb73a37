/* A hook of a function that executes statements, and the parts that all clients share.
 *
 * The handler of each function is replaced in the template. The original one is kept in the
 * function's reserved field, which PHP copies into functions of derived classes and into closures.
 * A call outside of a request with a reader costs two loads and the indirect call. No hook changes
 * arguments or results, catches an exception, or holds a resource while the original function runs:
 * that may end with a longjmp(). */
#ifndef SAMOVAR_INSIGHT_HOOKED_H
#define SAMOVAR_INSIGHT_HOOKED_H

#include "insight/statements.h"

typedef struct hook hook;

/* Describes the call before the original function runs. Returns the text; NO_TEXT: none has room.
 * `skips` is set if the call executes nothing. */
typedef uint32_t describe(const hook *h, zend_execute_data *execute_data, bool *skips);
/* Looks at the result. Returns the number of rows. */
typedef uint64_t finish(const hook *h, zend_execute_data *execute_data, zval *return_value,
                        statement_call *call);

struct hook {
    zif_handler original;
    describe *describe;
    finish *finish; /* may be NULL */
    const char *text;
    uint8_t len;
    uint8_t kind, dialect;
    uint8_t continues; /* the execution was counted before */
};

/* A row of a table of hooks: either name may be NULL. */
typedef struct {
    const char *function, *method;
    hook like;
} hook_row;

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])
#define FIXED(words) .describe = samovar_describe_fixed, .text = words, .len = sizeof words - 1

/* Hooks the functions of a table, and the methods of a class and its derived classes. */
void samovar_hook_all(const char *class_name, const hook_row *rows, size_t count);
/* Returns a function by its name in lower case; NULL: there is none. */
zend_function *samovar_find_function(const HashTable *table, const char *name);
/* Calls a function with one argument, for which it must not throw. Returns its result; 0 if it is
 * no positive number, or if there is no such function. */
uint64_t samovar_count_by(zend_function *function, zval *argument);

/* Returns an argument, counted from 1 after the object, which is the first argument of a function.
 * NULL: it was not passed. */
zval *samovar_argument(zend_execute_data *execute_data, uint32_t n);
/* Returns the object of the call; NULL: there is none. */
zend_object *samovar_subject(zend_execute_data *execute_data);

uint32_t samovar_text_of(const zval *text, sql_dialect dialect, bool *skips);
/* The text of the hook. */
describe samovar_describe_fixed;
/* The first argument. */
describe samovar_describe_argument;
/* Nothing is executed. `finish` is called all the same. */
describe samovar_describe_nothing;

/* Each hooks one extension. */
void samovar_hook_pdo(void);
void samovar_hook_databases(void);
void samovar_hook_http(void);
void samovar_hook_redis(void);

#endif
