/* The walk: a queue of containers, a set of visited ones, and the description of a value. */
#include "heap_walk/walk.h"
#include <zend_closures.h>
#include <zend_generators.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NUMBER_BYTES = 32, TEXT_MAX = 96, SAMPLE = 64 };

static const uint64_t SPREAD = 0x9E3779B97F4A7C15;

/* ---- memory -------------------------------------------------------------------------------- */

/* Uses system calls: interposed functions would record the mappings, and malloc would change the
 * figures that are counted. */
static void *map(size_t len) {
    void *at = (void *)syscall(SYS_mmap, NULL, len, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static const size_t SEEN_BYTES = sizeof(void *) * HEAP_WALK_SLOTS;
static const size_t QUEUE_BYTES = sizeof(heap_walk_step) * HEAP_WALK_SEEN_MAX;

bool samovar_walk_begin(heap_walk_walk *w, heap_walk_sink *sink, void *to) {
    *w = (heap_walk_walk){.sink = sink, .to = to};
    w->seen = map(SEEN_BYTES);
    w->queue = map(QUEUE_BYTES);
    if (!w->seen || !w->queue) {
        samovar_walk_end(w);
        return false;
    }
    return true;
}

void samovar_walk_end(heap_walk_walk *w) {
    if (w->seen) {
        syscall(SYS_munmap, w->seen, SEEN_BYTES);
    }
    if (w->queue) {
        syscall(SYS_munmap, w->queue, QUEUE_BYTES);
    }
    w->seen = NULL;
    w->queue = NULL;
}

/* ---- visited containers -------------------------------------------------------------------- */

static uint32_t slot_of(const heap_walk_walk *w, const void *container) {
    uint32_t at = (uint32_t)(((uintptr_t)container * SPREAD) >> 44);
    while (w->seen[at] && w->seen[at] != container) {
        at = (at + 1) & (HEAP_WALK_SLOTS - 1);
    }
    return at;
}

bool samovar_walk_has_seen(const heap_walk_walk *w, const void *container) {
    return w->seen[slot_of(w, container)] != NULL;
}

/* Marks a container as visited. Returns true at the first visit. */
static bool see(heap_walk_walk *w, const void *container) {
    const uint32_t at = slot_of(w, container);
    if (w->seen[at]) {
        return false;
    }
    if (w->seen_count == HEAP_WALK_SEEN_MAX) {
        w->cut = true;
        return false;
    }
    w->seen[at] = container;
    w->seen_count++;
    return true;
}

static void enqueue(heap_walk_walk *w, const void *container, bool is_object, uint32_t id) {
    w->queue[w->ahead++] = (heap_walk_step){container, id, is_object};
}

/* ---- description of a value ---------------------------------------------------------------- */

static uint64_t mix(uint64_t a, uint64_t b) {
    return (a ^ b) * SPREAD ^ (a >> 29);
}

static uint64_t hash_of(const char *at, size_t len) {
    return zend_inline_hash_func(at, len);
}

static uint64_t bytes_of_array(const HashTable *ht) {
    const size_t each = HT_IS_PACKED(ht) ? sizeof(zval) : sizeof(Bucket);
    return sizeof *ht + (ht->nTableSize > HT_MIN_SIZE || ht->nNumUsed ? ht->nTableSize * each : 0);
}

static uint64_t bytes_of_value(const zval *value) {
    ZVAL_DEREF(value);
    switch (Z_TYPE_P(value)) {
    case IS_STRING:
        return ZSTR_IS_INTERNED(Z_STR_P(value)) ? 0 : _ZSTR_STRUCT_SIZE(Z_STRLEN_P(value));
    case IS_ARRAY:
        return bytes_of_array(Z_ARRVAL_P(value));
    case IS_OBJECT:
        return sizeof(zend_object) + zend_object_properties_size(Z_OBJCE_P(value));
    default:
        return 0;
    }
}

/* Estimates the bytes of a container whose members are not reported, from its newest members and
 * their contents. */
static uint64_t bytes_of_members(const HashTable *ht) {
    uint64_t bytes = 0;
    uint32_t seen = 0;
    zval *value, *below;
    ZEND_HASH_REVERSE_FOREACH_VAL((HashTable *)ht, value) {
        bytes += bytes_of_value(value);
        if (Z_TYPE_P(value) == IS_ARRAY && zend_hash_num_elements(Z_ARRVAL_P(value)) <= SAMPLE) {
            ZEND_HASH_FOREACH_VAL(Z_ARRVAL_P(value), below) {
                bytes += bytes_of_value(below);
            }
            ZEND_HASH_FOREACH_END();
        }
        if (++seen == SAMPLE) {
            break;
        }
    }
    ZEND_HASH_FOREACH_END();
    return seen ? bytes / seen * ht->nNumOfElements : 0;
}

/* Hashes keys and plain values, without values below them. For containers that are too large to
 * be reported, and for those whose content cannot change. */
static uint64_t hash_of_array(const HashTable *ht) {
    uint64_t hash = ht->nNumOfElements;
    zend_ulong index;
    zend_string *key;
    zval *value;
    ZEND_HASH_FOREACH_KEY_VAL((HashTable *)ht, index, key, value) {
        hash = mix(hash, key ? hash_of(ZSTR_VAL(key), ZSTR_LEN(key)) : index);
        ZVAL_DEINDIRECT(value);
        ZVAL_DEREF(value);
        if (Z_TYPE_P(value) == IS_STRING) {
            hash = mix(hash, hash_of(Z_STRVAL_P(value), Z_STRLEN_P(value)));
        } else if (Z_TYPE_P(value) <= IS_DOUBLE) {
            hash =
                mix(hash, Z_TYPE_P(value) >= IS_LONG ? (uint64_t)Z_LVAL_P(value) : Z_TYPE_P(value));
        }
    }
    ZEND_HASH_FOREACH_END();
    return hash;
}

static void tell_text(heap_walk_node *n, const char *text, size_t len) {
    n->text = (heap_walk_text){text, len < TEXT_MAX ? len : TEXT_MAX};
    n->hash = hash_of(text, len);
}

static void tell_number(heap_walk_node *n, const zval *value, char *number) {
    if (Z_TYPE_P(value) == IS_LONG) {
        n->type = 'i';
        snprintf(number, NUMBER_BYTES, ZEND_LONG_FMT, Z_LVAL_P(value));
    } else {
        n->type = 'd';
        snprintf(number, NUMBER_BYTES, "%.17g", Z_DVAL_P(value));
    }
    tell_text(n, number, strlen(number));
}

/* Describes an object by its class, not by its identity: another object of the same class in its
 * place is not a change. */
static void tell_object(heap_walk_node *n, const zend_object *object) {
    n->type = 'o';
    tell_text(n, ZSTR_VAL(object->ce->name), ZSTR_LEN(object->ce->name));
    n->handle = object->handle;
    n->bytes = sizeof *object + zend_object_properties_size(object->ce);
    if (object->ce == zend_ce_closure && n->kind == HEAP_WALK_MEMBER) {
        const zend_function *f = zend_get_closure_method_def((zend_object *)object);
        if (f && f->type == ZEND_USER_FUNCTION) {
            n->place = samovar_heap_walk_string(f->op_array.filename);
            n->line = f->op_array.line_start;
            n->line_end = f->op_array.line_end;
        }
    }
}

static void tell_string(heap_walk_node *n, const zend_string *s) {
    n->type = 's';
    n->count = (uint32_t)ZSTR_LEN(s);
    n->bytes = ZSTR_IS_INTERNED(s) ? 0 : _ZSTR_STRUCT_SIZE(ZSTR_LEN(s));
    tell_text(n, ZSTR_VAL(s), ZSTR_LEN(s));
}

static void tell_value(heap_walk_node *n, const zval *value, char *number) {
    switch (Z_TYPE_P(value)) {
    case IS_NULL:
        n->type = 'n';
        break;
    case IS_FALSE:
    case IS_TRUE:
        n->type = 'b';
        tell_text(n, Z_TYPE_P(value) == IS_TRUE ? "true" : "false",
                  Z_TYPE_P(value) == IS_TRUE ? 4 : 5);
        break;
    case IS_LONG:
    case IS_DOUBLE:
        tell_number(n, value, number);
        break;
    case IS_STRING:
        tell_string(n, Z_STR_P(value));
        break;
    case IS_ARRAY:
        n->type = 'a';
        n->count = zend_hash_num_elements(Z_ARRVAL_P(value));
        n->bytes = GC_FLAGS(Z_ARRVAL_P(value)) & IS_ARRAY_IMMUTABLE
                       ? 0
                       : bytes_of_array(Z_ARRVAL_P(value));
        break;
    case IS_OBJECT:
        tell_object(n, Z_OBJ_P(value));
        break;
    case IS_RESOURCE: {
        const char *type = zend_rsrc_list_get_rsrc_type(Z_RES_P(value));
        n->type = 'r';
        tell_text(n, type ? type : "closed", type ? strlen(type) : 6);
        break;
    }
    default: /* A constant expression that was not evaluated yet. */
        n->type = 'x';
    }
}

/* ---- nodes --------------------------------------------------------------------------------- */

static bool may_tell(heap_walk_walk *w) {
    if (w->nodes < HEAP_WALK_NODES_MAX) {
        return true;
    }
    w->cut = true;
    return false;
}

static void give(heap_walk_walk *w, heap_walk_node *n) {
    n->id = ++w->nodes;
    w->sink(w->to, n);
}

/* Returns true if the content of an array must be followed. An array that is immutable or was
 * reported elsewhere stays closed. */
static bool opens_array(heap_walk_walk *w, heap_walk_node *n, const HashTable *ht, bool told) {
    if (GC_FLAGS(ht) & IS_ARRAY_IMMUTABLE) {
        n->closed = true;
        n->hash = told ? hash_of_array(ht) : 0;
        return false;
    }
    const bool first = see(w, ht);
    n->closed = !first || n->count > HEAP_WALK_MEMBERS_MAX;
    if (first && n->closed) {
        n->bytes += bytes_of_members(ht);
    }
    n->hash = n->closed && told ? hash_of_array(ht) : 0;
    return first;
}

/* Reports the value, if there is still room, and queues its content. */
static void add(heap_walk_walk *w, heap_walk_node *n, zval *value, bool told) {
    char number[NUMBER_BYTES];
    ZVAL_DEINDIRECT(value);
    ZVAL_DEREF(value);
    if (Z_TYPE_P(value) == IS_UNDEF) {
        return;
    }
    told = told && may_tell(w);
    tell_value(n, value, number);
    const void *below = NULL;
    if (n->type == 'a' && opens_array(w, n, Z_ARRVAL_P(value), told)) {
        below = Z_ARRVAL_P(value);
    } else if (n->type == 'o') {
        below = see(w, Z_OBJ_P(value)) ? Z_OBJ_P(value) : NULL;
        n->closed = below == NULL;
    }
    if (told) {
        give(w, n);
    }
    if (below) {
        enqueue(w, below, n->type == 'o', told && !n->closed ? n->id : 0);
    }
}

void samovar_walk_root(heap_walk_walk *w, char kind, heap_walk_text key, zval *value,
                       const zend_string *file, uint32_t line, uint32_t line_end) {
    heap_walk_node n = {.kind = kind, .key = key, .line = line, .line_end = line_end};
    n.place = samovar_heap_walk_string(file);
    add(w, &n, value, true);
}

void samovar_walk_fact(heap_walk_walk *w, heap_walk_node *node) {
    if (may_tell(w)) {
        node->type = node->type ? node->type : 't';
        if (!node->hash) {
            node->hash = hash_of(node->text.at ? node->text.at : "", node->text.len);
        }
        give(w, node);
    }
}

/* ---- contents of a container --------------------------------------------------------------- */

static void add_member(heap_walk_walk *w, uint32_t parent, heap_walk_text key, zval *value) {
    heap_walk_node n = {.kind = HEAP_WALK_MEMBER, .parent = parent, .key = key};
    add(w, &n, value, parent != 0);
}

/* If the properties are stored in the object itself, its table only points to them. */
static void add_members(heap_walk_walk *w, uint32_t parent, HashTable *ht, bool points_too) {
    char number[NUMBER_BYTES];
    zend_ulong index;
    zend_string *key;
    zval *value;
    ZEND_HASH_FOREACH_KEY_VAL(ht, index, key, value) {
        heap_walk_text name = samovar_heap_walk_string(key);
        if (Z_TYPE_P(value) == IS_INDIRECT && !points_too) {
            continue;
        }
        if (!key) {
            snprintf(number, sizeof number, ZEND_LONG_FMT, (zend_long)index);
            name = samovar_heap_walk_text(number);
        }
        add_member(w, parent, name, value);
    }
    ZEND_HASH_FOREACH_END();
}

static void add_declared(heap_walk_walk *w, uint32_t parent, zend_object *object) {
    const zend_class_entry *ce = object->ce;
    for (int i = 0; ce->properties_info_table && i < ce->default_properties_count; i++) {
        const zend_property_info *info = ce->properties_info_table[i];
        if (info) {
            const char *class, *name;
            size_t len;
            zend_unmangle_property_name_ex(info->name, &class, &name, &len);
            add_member(w, parent, (heap_walk_text){name, len}, OBJ_PROP_NUM(object, i));
        }
    }
}

static void add_closure(heap_walk_walk *w, uint32_t parent, zend_object *object) {
    zval closure;
    ZVAL_OBJ(&closure, object);
    zval *bound = zend_get_closure_this_ptr(&closure);
    if (bound && Z_TYPE_P(bound) == IS_OBJECT) {
        add_member(w, parent, samovar_heap_walk_text("this"), bound);
    }
    const zend_function *f = zend_get_closure_method_def(object);
    if (f && f->type == ZEND_USER_FUNCTION && ZEND_MAP_PTR(f->op_array.static_variables_ptr)) {
        HashTable *variables = ZEND_MAP_PTR_GET(f->op_array.static_variables_ptr);
        if (variables) {
            add_members(w, parent, variables, true);
        }
    }
}

/* Adds the values that an object holds apart from its properties, as it reports them to the
 * garbage collector. */
static void add_hidden(heap_walk_walk *w, uint32_t parent, zend_object *object) {
    char number[NUMBER_BYTES];
    zval *table = NULL;
    int count = 0;
    HashTable *more = object->handlers->get_gc(object, &table, &count);
    const bool told = count <= HEAP_WALK_MEMBERS_MAX;
    for (int i = 0; i < count; i++) {
        if (&table[i] >= object->properties_table &&
            &table[i] < object->properties_table + object->ce->default_properties_count) {
            continue;
        }
        snprintf(number, sizeof number, "#%d", i);
        add_member(w, told ? parent : 0, samovar_heap_walk_text(number), &table[i]);
    }
    if (more && more != object->properties) {
        add_members(w, parent, more, false);
    }
}

static void open_object(heap_walk_walk *w, uint32_t id, zend_object *object) {
    if (OBJ_FLAGS(object) & IS_OBJ_FREE_CALLED) {
        return;
    }
    add_declared(w, id, object);
    if (object->properties) {
        add_members(w, id, object->properties, false);
    }
    if (object->ce == zend_ce_closure) {
        add_closure(w, id, object);
    } else if (object->handlers->get_gc && object->handlers->get_gc != zend_std_get_gc) {
        add_hidden(w, id, object);
    }
}

void samovar_walk_follow(heap_walk_walk *w) {
    while (w->next < w->ahead) {
        const heap_walk_step step = w->queue[w->next++];
        if (step.is_object) {
            open_object(w, step.id, (zend_object *)step.container);
        } else {
            add_members(w, step.id, (HashTable *)step.container, true);
        }
    }
}

bool samovar_heap_walk_collects;

void samovar_heap_walk_collect(void) {
    if (!gc_enabled() || CG(unclean_shutdown)) {
        return;
    }
    samovar_heap_walk_collects = true;
    zend_try {
        gc_collect_cycles();
    }
    zend_end_try();
    samovar_heap_walk_collects = false;
}
