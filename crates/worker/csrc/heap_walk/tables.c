/* Contents of the engine's tables: code, ini settings, wrappers, resources. */
#include "heap_walk/tables.h"
#include "sapi/sapi.h"
#include <php_ini.h>
#include <ext/standard/basic_functions.h>
#include <malloc.h>

enum { TYPES_MAX = 256 };

/* ---- code ---------------------------------------------------------------------------------- */

static void add_class(heap_walk_walk *w, const zend_class_entry *ce) {
    heap_walk_node n = {.kind = HEAP_WALK_CLASS, .key = samovar_heap_walk_string(ce->name)};
    n.place = samovar_heap_walk_string(ce->info.user.filename);
    n.line = ce->info.user.line_start;
    n.line_end = ce->info.user.line_end;
    samovar_walk_fact(w, &n);
}

static void add_a_function(heap_walk_walk *w, const zend_op_array *code) {
    heap_walk_node n = {.kind = HEAP_WALK_FUNCTION,
                        .key = samovar_heap_walk_string(code->function_name)};
    n.place = samovar_heap_walk_string(code->filename);
    n.line = code->line_start;
    n.line_end = code->line_end;
    samovar_walk_fact(w, &n);
}

void samovar_heap_walk_code(heap_walk_walk *w) {
    zval *entry;
    ZEND_HASH_FOREACH_VAL(EG(class_table), entry) {
        const zend_class_entry *ce = Z_PTR_P(entry);
        if (Z_TYPE_P(entry) == IS_PTR && ce->type == ZEND_USER_CLASS) {
            add_class(w, ce);
        }
    }
    ZEND_HASH_FOREACH_END();
    const zend_function *f;
    ZEND_HASH_FOREACH_PTR(EG(function_table), f) {
        if (f->type == ZEND_USER_FUNCTION) {
            add_a_function(w, &f->op_array);
        }
    }
    ZEND_HASH_FOREACH_END();
    zend_string *file;
    ZEND_HASH_FOREACH_STR_KEY(&EG(included_files), file) {
        heap_walk_node n = {.kind = HEAP_WALK_FILE, .key = samovar_heap_walk_string(file)};
        samovar_walk_fact(w, &n);
    }
    ZEND_HASH_FOREACH_END();
}

/* ---- settings ------------------------------------------------------------------------------ */

void samovar_heap_walk_settings(heap_walk_walk *w) {
    const zend_ini_entry *entry;
    ZEND_HASH_FOREACH_PTR(EG(ini_directives), entry) {
        heap_walk_node n = {.kind = HEAP_WALK_INI, .key = samovar_heap_walk_string(entry->name)};
        n.text = samovar_heap_walk_string(entry->value);
        n.bytes = n.text.len;
        samovar_walk_fact(w, &n);
    }
    ZEND_HASH_FOREACH_END();
}

/* ---- wrappers, resources, memory ----------------------------------------------------------- */

static void add_names(heap_walk_walk *w, const HashTable *table, const char *what) {
    zend_string *name;
    zval *entry;
    ZEND_HASH_FOREACH_STR_KEY_VAL((HashTable *)table, name, entry) {
        /* A wrapper of PHP code has its own memory, so its address shows that it replaces
         * another. */
        const php_stream_wrapper *wrapper = Z_TYPE_P(entry) == IS_PTR ? Z_PTR_P(entry) : NULL;
        heap_walk_node n = {.kind = HEAP_WALK_WRAPPER, .key = samovar_heap_walk_string(name)};
        n.text = samovar_heap_walk_text(what);
        n.hash = (uint64_t)(uintptr_t)wrapper | 1;
        samovar_walk_fact(w, &n);
    }
    ZEND_HASH_FOREACH_END();
}

static void add_resources(heap_walk_walk *w) {
    uint32_t counts[TYPES_MAX] = {0};
    const char *names[TYPES_MAX] = {0};
    zval *entry;
    ZEND_HASH_FOREACH_VAL(&EG(regular_list), entry) {
        const int type = Z_TYPE_P(entry) == IS_RESOURCE ? Z_RES_TYPE_P(entry) : -1;
        if (type >= 0 && type < TYPES_MAX) {
            counts[type]++;
            names[type] = zend_rsrc_list_get_rsrc_type(Z_RES_P(entry));
        }
    }
    ZEND_HASH_FOREACH_END();
    for (int i = 0; i < TYPES_MAX; i++) {
        if (names[i]) {
            heap_walk_node n = {.kind = HEAP_WALK_RESOURCES,
                                .key = samovar_heap_walk_text(names[i])};
            n.count = counts[i];
            n.hash = counts[i];
            n.type = 'i';
            samovar_walk_fact(w, &n);
        }
    }
}

static void add_memory(heap_walk_walk *w, const char *name, uint64_t bytes) {
    heap_walk_node n = {.kind = HEAP_WALK_MEMORY, .key = samovar_heap_walk_text(name), .type = 'i'};
    n.bytes = bytes;
    n.hash = bytes | 1;
    samovar_walk_fact(w, &n);
}

void samovar_heap_walk_holdings(heap_walk_walk *w) {
    add_names(w, php_stream_get_url_stream_wrappers_hash(), "stream wrapper");
    add_names(w, php_get_stream_filters_hash(), "stream filter");
    if (BG(user_filter_map)) {
        add_names(w, BG(user_filter_map), "stream filter");
    }
    add_resources(w);
    add_memory(w, "PHP's heap", zend_memory_usage(0));
    add_memory(w, "malloc's heap", mallinfo2().uordblks);
}
