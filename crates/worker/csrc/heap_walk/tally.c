/* The tally keeps the path of each container, as a number, and its size. Nothing else of the
 * previous walk is kept. New values in a container count as its growth, with all values below
 * them. */
#include "heap_walk/tally.h"
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    KNOWN_SLOTS = 1 << 17,
    KNOWN_MAX = KNOWN_SLOTS / 2, /* containers that are compared */
    KEY_MAX = 64,
    KEYS_BYTES = 16 << 20,
    STRING_MIN = 256, /* bytes; shorter strings are not compared */
    DEPTH_MAX = 32
};

typedef struct {
    uint64_t way;
    uint32_t count;
} known;

typedef struct {
    uint64_t way, came, plain; /* bytes: `came` added below, `plain` of plain members */
    uint32_t parent, count, grown, holder;
    uint32_t line, line_end;
    const char *key, *file;
    uint32_t file_len;
    uint8_t key_len;
    char kind, type;
} tallied;

static const size_t KNOWN_BYTES = sizeof(known) * KNOWN_SLOTS;
static const size_t NODES_BYTES = sizeof(tallied) * (HEAP_WALK_NODES_MAX + 1);

/* The previous walk and the current one. */
static known *before, *now;
static uint32_t now_count;
static tallied *nodes;
static uint32_t node_count;
static char *keys;
static size_t keys_used;

/* A private mapping by a system call, because an interposed function would record it. */
static void *map(size_t len) {
    void *at = (void *)syscall(SYS_mmap, NULL, len, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static void unmap(void *at, size_t len) {
    if (at) {
        syscall(SYS_munmap, at, len);
    }
}

/* ---- known containers ---------------------------------------------------------------------- */

static known *find(known *table, uint64_t way) {
    uint32_t at = (uint32_t)way & (KNOWN_SLOTS - 1);
    while (table[at].way && table[at].way != way) {
        at = (at + 1) & (KNOWN_SLOTS - 1);
    }
    return &table[at];
}

static void remember(uint64_t way, uint32_t count) {
    known *slot = find(now, way);
    if (slot->way == way) {
        slot->count += count; /* Two containers of one name. */
    } else if (now_count < KNOWN_MAX) {
        *slot = (known){way, count};
        now_count++;
    }
}

/* ---- the current walk ---------------------------------------------------------------------- */

static const char *keep_key(const heap_walk_node *n, uint8_t *len) {
    *len = (uint8_t)(n->key.len < KEY_MAX ? n->key.len : KEY_MAX);
    if (keys_used + *len > KEYS_BYTES) {
        *len = 0;
        return "";
    }
    char *to = keys + keys_used;
    memcpy(to, n->key.at, *len);
    keys_used += *len;
    return to;
}

static uint64_t way_of(uint64_t above, const heap_walk_node *n) {
    const uint64_t key = zend_inline_hash_func(n->key.at, n->key.len);
    const uint64_t way = (above ^ key ^ ((uint64_t)n->kind << 56)) * 0x9E3779B97F4A7C15;
    return (way ^ way >> 31) | 1;
}

static bool is_compared(const heap_walk_node *n) {
    return n->type == 'a' || n->type == 'o' || n->kind == HEAP_WALK_OBJECTS ||
           (n->type == 's' && n->count >= STRING_MIN);
}

/* All new bytes are added to the nearest container above that existed before. */
static void count_in(tallied *node, const heap_walk_node *n, bool is_new) {
    tallied *above = &nodes[n->parent];
    node->holder = is_new ? above->holder : n->id;
    if (n->parent == 0) {
        return;
    }
    if (is_compared(n)) {
        nodes[above->holder].came += is_new ? n->bytes : 0;
    } else if (above->holder == n->parent) {
        above->plain += n->bytes;
    } else {
        nodes[above->holder].came += n->bytes;
    }
}

static void take(void *to, const heap_walk_node *n) {
    (void)to;
    if (n->id > HEAP_WALK_NODES_MAX) {
        return;
    }
    tallied *node = &nodes[n->id];
    node_count = n->id;
    const known *was = NULL;
    if (is_compared(n)) {
        node->way = way_of(nodes[n->parent].way, n);
        node->parent = n->parent;
        node->kind = n->kind;
        node->type = n->type;
        node->count = n->count;
        node->key = keep_key(n, &node->key_len);
        node->file = n->place.at;
        node->file_len = (uint32_t)n->place.len;
        node->line = n->line;
        node->line_end = n->line_end;
        remember(node->way, n->count);
        was = before ? find(before, node->way) : NULL;
        was = was && was->way ? was : NULL;
        node->grown = was && n->count > was->count ? n->count - was->count : 0;
    }
    count_in(node, n, was == NULL);
    if (n->closed && n->count > HEAP_WALK_MEMBERS_MAX) {
        node->plain += n->bytes;
    }
}

/* ---- growing containers -------------------------------------------------------------------- */

static uint64_t bytes_of(const tallied *node) {
    if (node->type == 's') {
        return node->grown;
    }
    const uint64_t plain = node->count ? node->plain / node->count * node->grown : 0;
    return node->came + plain + (uint64_t)node->grown * sizeof(Bucket);
}

static size_t add_step(char *to, size_t at, const tallied *node, char parent_type) {
    const char *form = "%.*s";
    if (node->kind == HEAP_WALK_MEMBER) {
        const bool is_number = node->key_len > 0 && node->key[0] <= '9';
        form = parent_type == 'o' ? "->%.*s" : is_number ? "[%.*s]" : "['%.*s']";
    }
    const int n = snprintf(to + at, GROWER_NAME - at, form, (int)node->key_len, node->key);
    return at + (size_t)n < GROWER_NAME ? at + (size_t)n : GROWER_NAME - 1;
}

static const tallied *put_name(char *to, const tallied *node) {
    const tallied *way[DEPTH_MAX];
    uint32_t depth = 0;
    const tallied *root = node;
    while (depth < DEPTH_MAX) {
        way[depth++] = root;
        if (root->kind != HEAP_WALK_MEMBER) {
            break;
        }
        root = &nodes[root->parent];
    }
    size_t at = 0;
    for (char above = 0; depth-- > 0; above = way[depth]->type) {
        at = add_step(to, at, way[depth], above);
    }
    return root;
}

static void describe(grower *to, const tallied *node) {
    const tallied *root = put_name(to->name, node);
    to->unit = node->type == 's'                 ? "bytes"
               : node->kind == HEAP_WALK_OBJECTS ? "unreachable objects"
                                                 : "elements";
    to->grown = node->grown;
    to->bytes = bytes_of(node);
    to->file = root->file;
    to->file_len = root->file_len;
    to->line = root->line;
    to->line_end = root->line_end;
    to->kind = root->kind;
}

/* Selects the containers with the largest growth, in descending order of their bytes. */
static uint32_t pick(grower *to) {
    const tallied *best[GROWERS_MAX] = {0};
    uint32_t count = 0;
    for (uint32_t id = 1; id <= node_count; id++) {
        const tallied *node = &nodes[id];
        if (node->grown == 0) {
            continue;
        }
        uint32_t at = count < GROWERS_MAX ? count++ : GROWERS_MAX;
        for (; at > 0 && bytes_of(best[at - 1]) < bytes_of(node); at--) {
            if (at < GROWERS_MAX) {
                best[at] = best[at - 1];
            }
        }
        if (at < GROWERS_MAX) {
            best[at] = node;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        describe(&to[i], best[i]);
    }
    return count;
}

/* ---- tally --------------------------------------------------------------------------------- */

static void walk(const heap_walk_waiting *waiting) {
    heap_walk_walk w;
    zend_try {
        if (samovar_walk_begin(&w, take, NULL)) {
            samovar_heap_walk_roots(&w, waiting);
            samovar_heap_walk_unreached(&w);
        }
    }
    zend_end_try();
    samovar_walk_end(&w);
}

uint32_t samovar_tally(const heap_walk_waiting *waiting, grower *to) {
    uint32_t count = 0;
    now = map(KNOWN_BYTES);
    nodes = map(NODES_BYTES);
    keys = map(KEYS_BYTES);
    now_count = node_count = 0;
    keys_used = 0;
    if (now && nodes && keys) {
        walk(waiting);
        count = before ? pick(to) : 0;
        unmap(before, KNOWN_BYTES);
        before = now;
    } else {
        unmap(now, KNOWN_BYTES);
    }
    unmap(nodes, NODES_BYTES);
    unmap(keys, KEYS_BYTES);
    return count;
}
