/* The free part of the Zend heap, and of malloc's, at the checkpoint: what no rollback needs to put
 * back.
 *
 * A page that is free then may hold anything afterwards, as in any process that has served
 * requests: the heap writes to what it hands out first. So that requests use such pages, and not
 * the gaps between the objects of the boot, the heap's lists of small gaps are emptied at the
 * checkpoint: a rollback then copies pages that the request has changed, not those it has only
 * used.
 *
 * Zend/zend_alloc.c keeps its structures to itself. Where the two that are needed lie is learned
 * from a heap whose answers are known, and believed only when all of it agrees. */
#include "memory/heap.h"
#include "memory/image.h"
#include <php.h>
#include <malloc.h>
#include <unistd.h>
#include <zend_alloc.h>
#include <zend_alloc_sizes.h>

enum {
    CHUNK_PAGES = SAMOVAR_CHUNK_BYTES / IMAGE_PAGE,
    HEAP_AT = 64,        /* of the heap's own structure in its first chunk */
    LIST_WORDS_MAX = 32, /* of that structure, before the lists */
    MAP_BYTES = CHUNK_PAGES / 8,
    INFO_BYTES = CHUNK_PAGES * 4, /* a word for each page, after the map */
    RUN_PAGES = 3,
    CHUNKS_LISTED_MAX = 4096
};

/* malloc: the low bits of a size; two words before what a piece holds, two in it while it is free.
 */
#define MALLOC_FLAGS ((size_t)7)
#define TOP_WORDS_BYTES (4 * sizeof(size_t))
#define PAGE_MASK ((uintptr_t)IMAGE_PAGE - 1)

/* zend_alloc.c: ZEND_MM_LRUN(n), the word of the first of n pages. */
#define RUN_OF(n) (0x40000000u | (n))

#define BIN_SIZE(number, size, elements, pages, x, y) size,
static const size_t bin_sizes[] = {ZEND_MM_BINS_INFO(BIN_SIZE, , )};
enum { BINS = sizeof bin_sizes / sizeof bin_sizes[0] };

/* Offsets in the heap and in a chunk; 0: not learned. */
static size_t lists_at, map_at;

static char *first_chunk(void) {
    return (char *)((uintptr_t)zend_mm_get_heap() & ~((uintptr_t)SAMOVAR_CHUNK_BYTES - 1));
}

static void **lists(void) {
    return (void **)((char *)zend_mm_get_heap() + lists_at);
}

/* What was given back last is first in its size's list. A size that is rounded up to the next has
 * an empty list. */
static bool is_list(void **list, size_t size) {
    void *piece = emalloc(size);
    const bool own_list = zend_mem_block_size(piece) == size;
    efree(piece);
    return *list == (own_list ? piece : NULL);
}

static bool learn_lists(void) {
    void **words = (void **)zend_mm_get_heap();
    for (size_t at = 1; at < LIST_WORDS_MAX; at++) {
        size_t bin = 0;
        while (bin < BINS && is_list(&words[at + bin], bin_sizes[bin])) {
            bin++;
        }
        if (bin == BINS) {
            lists_at = at * sizeof *words;
            return true;
        }
    }
    return false;
}

static bool is_used(const char *chunk, size_t map, size_t page) {
    const zend_ulong word = ((const zend_ulong *)(chunk + map))[page / (8 * sizeof(zend_ulong))];
    return word >> page % (8 * sizeof(zend_ulong)) & 1;
}

static bool describes(const char *chunk, size_t map, size_t run) {
    const uint32_t *info = (const uint32_t *)(chunk + map + MAP_BYTES);
    bool used = is_used(chunk, map, 0);
    for (size_t page = run; page < run + RUN_PAGES; page++) {
        used = used && is_used(chunk, map, page);
    }
    return used && info[0] == RUN_OF(1) && info[run] == RUN_OF(RUN_PAGES);
}

/* The map of a chunk's pages lies in its first page: it describes a run while that is held. */
static bool learn_map(void) {
    char *run = emalloc((size_t)RUN_PAGES * IMAGE_PAGE);
    const char *chunk = first_chunk();
    const size_t page = (size_t)(run - chunk) / IMAGE_PAGE;
    size_t found = 0, agree = 0;
    if (run > chunk && page < CHUNK_PAGES) {
        const size_t last = IMAGE_PAGE - INFO_BYTES - MAP_BYTES;
        for (size_t map = HEAP_AT; map <= last; map += sizeof(zend_ulong)) {
            if (describes(chunk, map, page)) {
                found = map;
                agree++;
            }
        }
    }
    efree(run);
    if (agree != 1 || is_used(chunk, found, page)) {
        return false;
    }
    map_at = found;
    return true;
}

void samovar_heap_learn(void) {
    const bool known = is_zend_mm() && (char *)zend_mm_get_heap() == first_chunk() + HEAP_AT;
    if (!known || !learn_lists() || !learn_map()) {
        lists_at = map_at = 0;
    }
}

void samovar_heap_close(void) {
    if (map_at == 0 || !is_zend_mm()) {
        return;
    }
    zend_mm_gc(zend_mm_get_heap());
    memset(lists(), 0, BINS * sizeof(void *));
}

/* The chunks form a ring: the second word of each is the next one. */
static char *next_chunk(const char *chunk) {
    return ((char *const *)chunk)[1];
}

/* malloc's last piece, up to the heap's end, beyond the words that say how long it is. calloc()
 * clears what it takes of it: it trusts only what is new from the kernel. */
static void visit_top_of_malloc(samovar_free_visitor *visit, void *data) {
    const size_t len = mallinfo2().keepcost;
    char *end = samovar_image->brk, *top = end - len;
    if (sbrk(0) != (void *)end || len < IMAGE_PAGE || !samovar_image_has(top, 1)) {
        return;
    }
    const size_t said = ((const size_t *)top)[1];
    const uintptr_t from = ((uintptr_t)top + TOP_WORDS_BYTES + IMAGE_PAGE - 1) & ~PAGE_MASK;
    if ((said & ~MALLOC_FLAGS) == len && from < ((uintptr_t)end & ~PAGE_MASK)) {
        visit(data, (char *)from, (const char *)((uintptr_t)end & ~PAGE_MASK));
    }
}

void samovar_heap_for_each_free(samovar_free_visitor *visit, void *data) {
    visit_top_of_malloc(visit, data);
    if (map_at == 0 || !is_zend_mm()) {
        return;
    }
    char *first = first_chunk(), *chunk = first;
    for (uint32_t n = 0; n < CHUNKS_LISTED_MAX; n++) {
        for (size_t page = 1, run; page < CHUNK_PAGES; page += run) {
            run = 1;
            if (is_used(chunk, map_at, page)) {
                continue;
            }
            while (page + run < CHUNK_PAGES && !is_used(chunk, map_at, page + run)) {
                run++;
            }
            char *from = chunk + page * IMAGE_PAGE;
            visit(data, from, from + run * IMAGE_PAGE);
        }
        chunk = next_chunk(chunk);
        if (chunk == first) {
            break;
        }
    }
}
