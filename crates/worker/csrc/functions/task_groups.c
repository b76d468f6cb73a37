/* Samovar\parallel() and Samovar\first(): groups of tasks that begin and end together. */
#include "functions/tasks.h"
#include <zend_exceptions.h>
#include "functions/arginfo/prototypes.h"

typedef struct {
    samovar_task **tasks;
    uint32_t count;
} group;

static void group_free(group *g) {
    for (uint32_t i = 0; i < g->count; i++) {
        g->tasks[i]->is_awaited = true;
        OBJ_RELEASE(&g->tasks[i]->std);
    }
    efree(g->tasks);
}

static samovar_task *make(zval *callable, zend_ulong index, const zend_string *key) {
    zend_fcall_info call;
    zend_fcall_info_cache cache;
    char number[24];
    char *error = NULL;
    if (zend_fcall_info_init(callable, 0, &call, &cache, NULL, &error) != SUCCESS) {
        zend_argument_type_error(1, "must be an array of callables: %s", error ? error : "");
        if (error) {
            efree(error);
        }
        return NULL;
    }
    if (key) {
        return samovar_task_new(&call, &cache, ZSTR_VAL(key), ZSTR_LEN(key));
    }
    const int len = snprintf(number, sizeof number, ZEND_LONG_FMT, (zend_long)index);
    return samovar_task_new(&call, &cache, number, (size_t)len);
}

/* Checks all callables before the first task begins. */
static bool group_make(group *g, HashTable *callables) {
    zend_ulong index;
    zend_string *key;
    zval *callable;
    *g = (group){.tasks = safe_emalloc(zend_hash_num_elements(callables) + 1, sizeof *g->tasks, 0)};
    ZEND_HASH_FOREACH_KEY_VAL(callables, index, key, callable) {
        ZVAL_DEREF(callable);
        samovar_task *task = make(callable, index, key);
        if (!task) {
            return false;
        }
        g->tasks[g->count++] = task;
    }
    ZEND_HASH_FOREACH_END();
    return true;
}

static uint32_t group_running(const group *g) {
    uint32_t running = 0;
    for (uint32_t i = 0; i < g->count; i++) {
        running += g->tasks[i]->state != TASK_DONE && g->tasks[i]->state != TASK_NEW;
    }
    return running;
}

/* Cancels the tasks that have not ended, and waits for their end. A pending exception stays
 * pending. */
static void group_end(const group *g) {
    zend_object *thrown = EG(exception);
    EG(exception) = NULL;
    for (uint32_t i = 0; i < g->count; i++) {
        if (g->tasks[i]->state != TASK_NEW) {
            samovar_task_cancel(g->tasks[i]);
        }
    }
    task_woken woken = WOKEN_READY;
    while (group_running(g) > 0 && (woken == WOKEN_READY || woken == WOKEN_CANCELLED)) {
        task_wait wait = {.told = samovar_task_ends, .ends_others = true};
        woken = samovar_task_wait(&wait);
    }
    if (thrown && EG(exception)) {
        zend_clear_exception();
    }
    if (thrown) {
        EG(exception) = thrown;
    }
}

static const samovar_task *group_failed(const group *g) {
    for (uint32_t i = 0; i < g->count; i++) {
        if (g->tasks[i]->thrown) {
            return g->tasks[i];
        }
    }
    return NULL;
}

static const samovar_task *group_returned(const group *g) {
    for (uint32_t i = 0; i < g->count; i++) {
        if (g->tasks[i]->state == TASK_DONE && !Z_ISUNDEF(g->tasks[i]->result)) {
            return g->tasks[i];
        }
    }
    return NULL;
}

typedef const samovar_task *group_decision(const group *g);

/* Runs the tasks until `decides` returns a task, or all have ended. Returns false if an
 * exception is thrown. */
static bool group_run(group *g, uint64_t deadline_ns, group_decision *decides) {
    for (uint32_t i = 0; i < g->count && !decides(g); i++) {
        if (!samovar_task_begin(g->tasks[i])) {
            return false;
        }
    }
    while (!decides(g) && group_running(g) > 0) {
        if (!samovar_wait_for_word(samovar_task_ends, deadline_ns,
                                   "The tasks did not end within their timeout")) {
            return false;
        }
    }
    return true;
}

static void rethrow(const samovar_task *task) {
    GC_ADDREF(task->thrown);
    zend_throw_exception_internal(task->thrown);
}

/* ---- functions ----------------------------------------------------------------------------- */

static void collect(const group *g, HashTable *callables, zval *to) {
    zend_ulong index;
    zend_string *key;
    uint32_t i = 0;
    array_init_size(to, g->count);
    ZEND_HASH_FOREACH_KEY(callables, index, key) {
        zval result;
        if (Z_ISUNDEF(g->tasks[i]->result)) {
            ZVAL_NULL(&result);
        } else {
            ZVAL_COPY(&result, &g->tasks[i]->result);
        }
        i++;
        if (key) {
            zend_hash_add_new(Z_ARRVAL_P(to), key, &result);
        } else {
            zend_hash_index_add_new(Z_ARRVAL_P(to), index, &result);
        }
    }
    ZEND_HASH_FOREACH_END();
}

ZEND_FUNCTION(Samovar_parallel) {
    HashTable *callables;
    double seconds = 0;
    bool is_endless = true;
    group g;
    ZEND_PARSE_PARAMETERS_START(1, 2)
    Z_PARAM_ARRAY_HT(callables)
    Z_PARAM_OPTIONAL
    Z_PARAM_DOUBLE_OR_NULL(seconds, is_endless)
    ZEND_PARSE_PARAMETERS_END();
    if (!is_endless && !samovar_seconds_are_valid(2, seconds)) {
        RETURN_THROWS();
    }
    if (group_make(&g, callables)) {
        const bool ran = group_run(&g, samovar_deadline(!is_endless, seconds), group_failed);
        const samovar_task *failed = group_failed(&g);
        if (ran && failed) {
            rethrow(failed);
        }
        group_end(&g);
        if (!EG(exception)) {
            collect(&g, callables, return_value);
        }
    }
    group_free(&g);
}

ZEND_FUNCTION(Samovar_first) {
    HashTable *callables;
    double seconds = 0;
    bool is_endless = true;
    group g;
    ZEND_PARSE_PARAMETERS_START(1, 2)
    Z_PARAM_ARRAY_HT(callables)
    Z_PARAM_OPTIONAL
    Z_PARAM_DOUBLE_OR_NULL(seconds, is_endless)
    ZEND_PARSE_PARAMETERS_END();
    if (!is_endless && !samovar_seconds_are_valid(2, seconds)) {
        RETURN_THROWS();
    }
    if (zend_hash_num_elements(callables) == 0) {
        zend_argument_value_error(1, "cannot be empty");
        RETURN_THROWS();
    }
    if (group_make(&g, callables)) {
        const bool ran = group_run(&g, samovar_deadline(!is_endless, seconds), group_returned);
        const samovar_task *winner = group_returned(&g), *failed = group_failed(&g);
        if (ran && !winner && failed) {
            rethrow(failed);
        }
        group_end(&g);
        if (!EG(exception) && winner) {
            ZVAL_COPY(return_value, &winner->result);
        }
    }
    group_free(&g);
}
