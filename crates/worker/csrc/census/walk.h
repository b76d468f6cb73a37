/* A walk through all values that PHP code can reach, from named roots, level by level: each array
 * and each object once, by the shortest way to it.
 *
 * This folder takes censuses: what there is in a process between two requests. It reads and changes
 * nothing; it includes from sapi/ and below. */
#ifndef SAMOVAR_CENSUS_WALK_H
#define SAMOVAR_CENSUS_WALK_H

#include <php.h>

/* Bytes with their number; not ended by a NUL. */
typedef struct {
    const char *at;
    size_t len;
} census_text;

/* What a node is, by one letter: crates/cli/src/leaks/census.rs reads them. */
enum {
    CENSUS_STATIC_PROPERTY = 's',
    CENSUS_STATIC_VARIABLE = 'v',
    CENSUS_GLOBAL = 'g',
    CENSUS_LOCAL = 'l', /* of a function that waits for requests */
    CENSUS_CONSTANT = 'c',
    CENSUS_HANDLER = 'h',
    CENSUS_HANDLER_OFTEN = 'H', /* one for each request, by its nature */
    CENSUS_INI = 'i',
    CENSUS_SETTING = 'x',
    CENSUS_ENVIRONMENT = 'e',
    CENSUS_CLASS = 'C',
    CENSUS_FUNCTION = 'F',
    CENSUS_FILE = 'I',
    CENSUS_WRAPPER = 'w',
    CENSUS_RESOURCES = 'r',
    CENSUS_OBJECTS = 'o', /* those that no root leads to, by class */
    CENSUS_MEMORY = 'b',
    CENSUS_DESCRIPTOR = 'd',
    CENSUS_MAPPING = 'm',
    CENSUS_CHILD = 'p',
    CENSUS_CALL = 'k', /* a note of calls.c */
    CENSUS_MEMBER = 'M',
    CENSUS_BEGIN = '<',
    CENSUS_END = '>'
};

typedef struct {
    uint32_t id, parent; /* 0: none */
    char kind;
    char type;       /* n b i d s a o r: PHP's; t: a text; x: not known yet */
    bool closed;     /* its members are not told */
    uint32_t count;  /* of members */
    uint32_t handle; /* of an object */
    uint64_t hash, bytes;
    census_text key, text, place;
    uint32_t line, line_end;
} census_node;

/* Where the nodes go. The texts are valid during the call. */
typedef void census_sink(void *to, const census_node *node);

enum {
    CENSUS_NODES_MAX = 500000,
    CENSUS_MEMBERS_MAX = 4096, /* of one container; the members of a larger one are not told */
    CENSUS_SLOTS = 1 << 20,    /* of the set of containers seen */
    CENSUS_SEEN_MAX = CENSUS_SLOTS / 4 * 3
};

typedef struct {
    const void *container;
    uint32_t id; /* 0: what is below is followed, not told */
    bool is_object;
} census_step;

typedef struct {
    census_sink *sink;
    void *to;
    const void **seen;
    census_step *queue;
    uint32_t seen_count, next, ahead, nodes;
    bool cut; /* a limit was met: not all is told */
} census_walk;

static inline census_text samovar_census_text(const char *text) {
    return (census_text){text, text ? strlen(text) : 0};
}

static inline census_text samovar_census_string(const zend_string *s) {
    return s ? (census_text){ZSTR_VAL(s), ZSTR_LEN(s)} : (census_text){"", 0};
}

/* False: no memory. Its own memory is mapped, and gone at the end. */
bool samovar_walk_begin(census_walk *w, census_sink *sink, void *to);
void samovar_walk_end(census_walk *w);
/* A value by its name, and the lines between which it is declared. */
void samovar_walk_root(census_walk *w, char kind, census_text key, zval *value,
                       const zend_string *file, uint32_t line, uint32_t line_end);
/* A fact that is no value: the sink gets it as it is, with a number of its own. */
void samovar_walk_fact(census_walk *w, census_node *node);
/* Follows all roots that were named so far. */
void samovar_walk_follow(census_walk *w);
/* Whether the way of some root has led there. */
bool samovar_walk_has_seen(const census_walk *w, const void *container);

/* Collects garbage cycles, which are no growth, unless the application has said that nobody does.
 */
void samovar_census_collect(void);
/* Meanwhile true: nobody is to put it off (model/collect.c). */
extern bool samovar_census_collects;

#endif
