/* Roots: static properties, static variables, globals, constants, handlers, and the frames of a
 * function that waits for requests. */
#include "heap_walk/roots.h"
#include "compat.h"
#include "sapi/sapi.h"
#include <zend_constants.h>
#include <ext/standard/basic_functions.h>
#include <ext/standard/file.h>

enum { NAME_MAX_BYTES = 256, FRAMES_MAX = 64, CLASSES_MAX = 1024 };

/* ---- classes and functions ----------------------------------------------------------------- */

static void add_static_variables(heap_walk_walk *w, const zend_function *f) {
    if (f->type != ZEND_USER_FUNCTION || !f->op_array.static_variables) {
        return;
    }
    const zend_op_array *code = &f->op_array;
    HashTable *variables = ZEND_MAP_PTR(code->static_variables_ptr)
                               ? ZEND_MAP_PTR_GET(code->static_variables_ptr)
                               : NULL;
    const char *class = code->scope ? ZSTR_VAL(code->scope->name) : "";
    char key[NAME_MAX_BYTES];
    zend_string *name;
    zval *value;
    ZEND_HASH_FOREACH_STR_KEY_VAL(variables ? variables : code->static_variables, name, value) {
        snprintf(key, sizeof key, "%s%s%s() $%s", class, *class ? "::" : "",
                 code->function_name ? ZSTR_VAL(code->function_name) : "{main}",
                 name ? ZSTR_VAL(name) : "?");
        samovar_walk_root(w, HEAP_WALK_STATIC_VARIABLE, samovar_heap_walk_text(key), value,
                          code->filename, code->line_start, code->line_end);
    }
    ZEND_HASH_FOREACH_END();
}

static void add_static_properties(heap_walk_walk *w, zend_class_entry *ce) {
    zval *now = ZEND_MAP_PTR(ce->static_members_table) ? CE_STATIC_MEMBERS(ce) : NULL;
    zval *members = now ? now : ce->default_static_members_table;
    const zend_property_info *info;
    ZEND_HASH_FOREACH_PTR(&ce->properties_info, info) {
        if ((info->flags & ZEND_ACC_STATIC) && info->ce == ce && members) {
            const char *class, *name;
            size_t len;
            char key[NAME_MAX_BYTES];
            zend_unmangle_property_name_ex(info->name, &class, &name, &len);
            snprintf(key, sizeof key, "%s::$%s", ZSTR_VAL(ce->name), name);
            samovar_walk_root(w, HEAP_WALK_STATIC_PROPERTY, samovar_heap_walk_text(key),
                              &members[info->offset], ce->info.user.filename,
                              ce->info.user.line_start, ce->info.user.line_end);
        }
    }
    ZEND_HASH_FOREACH_END();
}

/* Inherited methods share the static variables of the class that declares them. */
static void add_methods(heap_walk_walk *w, zend_class_entry *ce) {
    const zend_function *f;
    ZEND_HASH_FOREACH_PTR(&ce->function_table, f) {
        if (f->common.scope == ce) {
            add_static_variables(w, f);
        }
    }
    ZEND_HASH_FOREACH_END();
}

static void add_code(heap_walk_walk *w) {
    zval *entry;
    ZEND_HASH_FOREACH_VAL(EG(class_table), entry) {
        zend_class_entry *ce = Z_PTR_P(entry);
        /* Skips the alias of a class. */
        if (Z_TYPE_P(entry) == IS_PTR && ce->type == ZEND_USER_CLASS) {
            add_static_properties(w, ce);
            add_methods(w, ce);
        }
    }
    ZEND_HASH_FOREACH_END();
    const zend_function *f;
    ZEND_HASH_FOREACH_PTR(EG(function_table), f) {
        add_static_variables(w, f);
    }
    ZEND_HASH_FOREACH_END();
}

/* ---- globals and constants ----------------------------------------------------------------- */

/* Returns true for names whose values belong to the request: each request begins with new
 * values. */
static bool is_of_request(const zend_string *name) {
    static const char *const more[] = {"argv", "argc", "http_response_header"};
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        if (zend_string_equals_cstr(name, more[i], strlen(more[i]))) {
            return true;
        }
    }
    return zend_hash_exists(CG(auto_globals), (zend_string *)name) ||
           zend_string_equals_literal(name, "_SESSION") ||
           zend_string_equals_literal(name, "GLOBALS");
}

static void add_globals(heap_walk_walk *w) {
    char key[NAME_MAX_BYTES];
    zend_string *name;
    zval *value;
    ZEND_HASH_FOREACH_STR_KEY_VAL(&EG(symbol_table), name, value) {
        if (name && !is_of_request(name)) {
            snprintf(key, sizeof key, "$%s", ZSTR_VAL(name));
            samovar_walk_root(w, HEAP_WALK_GLOBAL, samovar_heap_walk_text(key), value, NULL, 0, 0);
        }
    }
    ZEND_HASH_FOREACH_END();
}

static void add_constants(heap_walk_walk *w) {
    zend_constant *constant;
    ZEND_HASH_FOREACH_PTR(EG(zend_constants), constant) {
        if (ZEND_CONSTANT_MODULE_NUMBER(constant) == PHP_USER_CONSTANT && constant->name) {
            samovar_walk_root(w, HEAP_WALK_CONSTANT, samovar_heap_walk_string(constant->name),
                              &constant->value, NULL, 0, 0);
        }
    }
    ZEND_HASH_FOREACH_END();
}

/* ---- handlers called by the engine --------------------------------------------------------- */

static void add_handler(heap_walk_walk *w, const char *name, zval *handler) {
    if (Z_TYPE_P(handler) != IS_UNDEF) {
        samovar_walk_root(w, HEAP_WALK_HANDLER, samovar_heap_walk_text(name), handler, NULL, 0, 0);
    }
}

static void add_former(heap_walk_walk *w, const char *name, const zend_stack *stack) {
    if (stack->top > 0) {
        zval depth;
        ZVAL_LONG(&depth, stack->top);
        samovar_walk_root(w, HEAP_WALK_HANDLER, samovar_heap_walk_text(name), &depth, NULL, 0, 0);
    }
}

static void add_shutdown_functions(heap_walk_walk *w) {
    HashTable *functions = BG(user_shutdown_function_names);
    if (!functions) {
        return;
    }
    php_shutdown_function_entry *entry;
    char key[NAME_MAX_BYTES];
    uint32_t n = 0;
    ZEND_HASH_FOREACH_PTR(functions, entry) {
        snprintf(key, sizeof key, "shutdown function %u", ++n);
        zval callable = samovar_shutdown_callable(entry);
        samovar_walk_root(w, HEAP_WALK_HANDLER_OFTEN, samovar_heap_walk_text(key), &callable, NULL,
                          0, 0);
    }
    ZEND_HASH_FOREACH_END();
}

static void add_autoloaders(heap_walk_walk *w) {
    zval name, all;
    ZVAL_UNDEF(&all);
    ZVAL_STRING(&name, "spl_autoload_functions");
    call_user_function(NULL, NULL, &name, &all, 0, NULL);
    zval_ptr_dtor(&name);
    if (Z_TYPE(all) == IS_ARRAY) {
        char key[NAME_MAX_BYTES];
        uint32_t n = 0;
        zval *loader;
        ZEND_HASH_FOREACH_VAL(Z_ARRVAL(all), loader) {
            snprintf(key, sizeof key, "autoloader %u", ++n);
            add_handler(w, key, loader);
        }
        ZEND_HASH_FOREACH_END();
        /* Follows them while the arrays still exist. */
        samovar_walk_follow(w);
    }
    zval_ptr_dtor(&all);
}

static void add_handlers(heap_walk_walk *w) {
    add_handler(w, "error handler", &EG(user_error_handler));
    add_handler(w, "exception handler", &EG(user_exception_handler));
    add_former(w, "error handlers below it", &EG(user_error_handlers));
    add_former(w, "exception handlers below it", &EG(user_exception_handlers));
    add_shutdown_functions(w);
    if (FG(default_context) && Z_TYPE(FG(default_context)->options) == IS_ARRAY &&
        zend_hash_num_elements(Z_ARRVAL(FG(default_context)->options)) > 0) {
        add_handler(w, "options of the default stream context", &FG(default_context)->options);
    }
}

/* ---- functions that wait for requests ------------------------------------------------------ */

static void add_frame(heap_walk_walk *w, zend_execute_data *frame) {
    const zend_op_array *code = &frame->func->op_array;
    const char *class = code->scope ? ZSTR_VAL(code->scope->name) : "";
    const char *function = code->function_name ? ZSTR_VAL(code->function_name) : "{main}";
    char key[NAME_MAX_BYTES];
    for (int i = 0; i < code->last_var; i++) {
        snprintf(key, sizeof key, "%s%s%s() $%s", class, *class ? "::" : "", function,
                 ZSTR_VAL(code->vars[i]));
        samovar_walk_root(w, HEAP_WALK_LOCAL, samovar_heap_walk_text(key),
                          ZEND_CALL_VAR_NUM(frame, i), code->filename, code->line_start,
                          code->line_end);
    }
    if (Z_TYPE(frame->This) == IS_OBJECT) {
        snprintf(key, sizeof key, "%s%s%s() $this", class, *class ? "::" : "", function);
        samovar_walk_root(w, HEAP_WALK_LOCAL, samovar_heap_walk_text(key), &frame->This,
                          code->filename, code->line_start, code->line_end);
    }
}

/* Skips the variables of the main script, which are globals. */
static void add_waiting(heap_walk_walk *w, const heap_walk_waiting *waiting) {
    if (waiting->handler) {
        samovar_walk_root(w, HEAP_WALK_LOCAL, samovar_heap_walk_text("the handler"),
                          waiting->handler, NULL, 0, 0);
    }
    zend_execute_data *frame = waiting->frames;
    for (int n = 0; frame && n < FRAMES_MAX; n++, frame = frame->prev_execute_data) {
        const bool has_symbols = ZEND_CALL_INFO(frame) & ZEND_CALL_HAS_SYMBOL_TABLE;
        if (frame->func && ZEND_USER_CODE(frame->func->type) &&
            !(has_symbols && frame->symbol_table == &EG(symbol_table))) {
            add_frame(w, frame);
        }
    }
}

void samovar_heap_walk_roots(heap_walk_walk *w, const heap_walk_waiting *waiting) {
    add_code(w);
    add_globals(w);
    add_constants(w);
    add_handlers(w);
    add_waiting(w, waiting);
    add_autoloaders(w);
    samovar_walk_follow(w);
}

/* ---- objects that no root leads to --------------------------------------------------------- */

typedef struct {
    const zend_class_entry *ce;
    uint32_t count;
} class_count;

static class_count *count_of(class_count *all, uint32_t *used, const zend_class_entry *ce) {
    for (uint32_t i = 0; i < *used; i++) {
        if (all[i].ce == ce) {
            return &all[i];
        }
    }
    if (*used == CLASSES_MAX) {
        return NULL;
    }
    all[*used] = (class_count){ce, 0};
    return &all[(*used)++];
}

/* Skips cases of enums, which live as long as their class. */
void samovar_heap_walk_unreached(heap_walk_walk *w) {
    static class_count counts[CLASSES_MAX];
    uint32_t used = 0;
    for (uint32_t i = 1; i < EG(objects_store).top; i++) {
        const zend_object *object = EG(objects_store).object_buckets[i];
        if (!IS_OBJ_VALID(object) || samovar_walk_has_seen(w, object) ||
            (object->ce->ce_flags & ZEND_ACC_ENUM)) {
            continue;
        }
        class_count *count = count_of(counts, &used, object->ce);
        if (count) {
            count->count++;
        }
    }
    for (uint32_t i = 0; i < used; i++) {
        heap_walk_node n = {.kind = HEAP_WALK_OBJECTS, .count = counts[i].count, .type = 'i'};
        n.key = samovar_heap_walk_string(counts[i].ce->name);
        n.bytes = (uint64_t)counts[i].count *
                  (sizeof(zend_object) + zend_object_properties_size(counts[i].ce));
        n.hash = counts[i].count;
        samovar_walk_fact(w, &n);
    }
}
