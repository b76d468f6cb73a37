/* Walks through all values that PHP code can reach, from named roots, level by level. Each array
 * and each object is visited once, by the shortest path to it.
 *
 * This folder makes heap walks: records of the state of a process between two requests. It only
 * reads. It includes from sapi/ and below. */
#ifndef SAMOVAR_HEAP_WALK_WALK_H
#define SAMOVAR_HEAP_WALK_WALK_H

#include <php.h>

/* A text with its length; not NUL-terminated. */
typedef struct {
    const char *at;
    size_t len;
} heap_walk_text;

/* Kind of a node, as one letter. Read by crates/cli/src/leaks/heap_walk.rs. */
enum {
    HEAP_WALK_STATIC_PROPERTY = 's',
    HEAP_WALK_STATIC_VARIABLE = 'v',
    HEAP_WALK_GLOBAL = 'g',
    HEAP_WALK_LOCAL = 'l', /* of a function that waits for requests */
    HEAP_WALK_CONSTANT = 'c',
    HEAP_WALK_HANDLER = 'h',
    HEAP_WALK_HANDLER_OFTEN = 'H', /* expected to be new in each request */
    HEAP_WALK_INI = 'i',
    HEAP_WALK_SETTING = 'x',
    HEAP_WALK_ENVIRONMENT = 'e',
    HEAP_WALK_CLASS = 'C',
    HEAP_WALK_FUNCTION = 'F',
    HEAP_WALK_FILE = 'I',
    HEAP_WALK_WRAPPER = 'w',
    HEAP_WALK_RESOURCES = 'r',
    HEAP_WALK_OBJECTS = 'o', /* objects that no root leads to, by class */
    HEAP_WALK_MEMORY = 'b',
    HEAP_WALK_DESCRIPTOR = 'd',
    HEAP_WALK_MAPPING = 'm',
    HEAP_WALK_CHILD = 'p',
    HEAP_WALK_CALL = 'k', /* a record of calls.c */
    HEAP_WALK_MEMBER = 'M',
    HEAP_WALK_BEGIN = '<',
    HEAP_WALK_END = '>'
};

typedef struct {
    uint32_t id, parent; /* 0: none */
    char kind;
    char type;       /* PHP's: n b i d s a o r; t: a text; x: not evaluated yet */
    bool closed;     /* its members are not reported */
    uint32_t count;  /* of members */
    uint32_t handle; /* of an object */
    uint64_t hash, bytes;
    heap_walk_text key, text, place;
    uint32_t line, line_end;
} heap_walk_node;

/* Receives the nodes. The texts are valid during the call. */
typedef void heap_walk_sink(void *to, const heap_walk_node *node);

enum {
    HEAP_WALK_NODES_MAX = 500000,
    HEAP_WALK_MEMBERS_MAX = 4096, /* per container; members of a larger one are not reported */
    HEAP_WALK_SLOTS = 1 << 20,    /* of the set of visited containers */
    HEAP_WALK_SEEN_MAX = HEAP_WALK_SLOTS / 4 * 3
};

typedef struct {
    const void *container;
    uint32_t id; /* 0: values below are followed, not reported */
    bool is_object;
} heap_walk_step;

typedef struct {
    heap_walk_sink *sink;
    void *to;
    const void **seen;
    heap_walk_step *queue;
    uint32_t seen_count, next, ahead, nodes;
    bool cut; /* a limit was reached: the report is not complete */
} heap_walk_walk;

static inline heap_walk_text samovar_heap_walk_text(const char *text) {
    return (heap_walk_text){text, text ? strlen(text) : 0};
}

static inline heap_walk_text samovar_heap_walk_string(const zend_string *s) {
    return s ? (heap_walk_text){ZSTR_VAL(s), ZSTR_LEN(s)} : (heap_walk_text){"", 0};
}

/* Begins a walk. Returns false if there is no memory. The walk's own memory is mapped, and
 * unmapped at its end. */
bool samovar_walk_begin(heap_walk_walk *w, heap_walk_sink *sink, void *to);
void samovar_walk_end(heap_walk_walk *w);
/* Adds a value with its name and the lines between which it is declared. */
void samovar_walk_root(heap_walk_walk *w, char kind, heap_walk_text key, zval *value,
                       const zend_string *file, uint32_t line, uint32_t line_end);
/* Adds a fact that is not a value. The sink gets it unchanged, but with its own number. */
void samovar_walk_fact(heap_walk_walk *w, heap_walk_node *node);
/* Follows all roots that were added so far. */
void samovar_walk_follow(heap_walk_walk *w);
/* Returns true if the walk has reached the container. */
bool samovar_walk_has_seen(const heap_walk_walk *w, const void *container);

/* Collects garbage cycles, which are not growth, unless the application has disabled their
 * collection. */
void samovar_heap_walk_collect(void);
/* True during that collection, which must not be postponed (model/collect.c). */
extern bool samovar_heap_walk_collects;

#endif
