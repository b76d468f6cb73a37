/* Memory of the Zend heap and of malloc that is free at the checkpoint. No rollback needs to
 * restore it.
 *
 * A page that is free at the checkpoint may hold anything afterwards, as in any process that has
 * served requests: the heap writes to memory before it hands it out. Requests must use such
 * pages, and not the gaps between the objects of the boot. So the heap's lists of small gaps are
 * emptied at the checkpoint. A rollback then copies the pages that the request has changed, not
 * the pages that it has only used.
 *
 * Zend/zend_alloc.c does not export its structures. The positions of the two that are needed are
 * learned from a heap with known results, and trusted only if all results agree. */
#include "memory/heap.h"
#include "memory/image.h"
#include <php.h>
#include <malloc.h>
#include <unistd.h>
#include <zend_alloc.h>
#include <zend_alloc_sizes.h>

enum {
    CHUNK_PAGES = SAMOVAR_CHUNK_BYTES / IMAGE_PAGE,
    HEAP_AT = 64,        /* offset of the heap's structure in its first chunk */
    LIST_WORDS_MAX = 32, /* of that structure, before the lists */
    MAP_BYTES = CHUNK_PAGES / 8,
    INFO_BYTES = CHUNK_PAGES * 4, /* one word per page, after the map */
    RUN_PAGES = 3,
    CHUNKS_LISTED_MAX = 4096
};

/* malloc: the low bits of a size are flags. A piece has two words before its content, and two
 * more inside it while it is free. */
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

/* Returns true if this is the free list of `size`. The piece that was freed last is first in the
 * list of its size. A size that is rounded up to the next one has an empty list. */
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

/* Finds the map of a chunk's pages, which is in its first page. It describes a run of pages
 * while the run is allocated. */
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

/* The chunks form a ring: the second word of each points to the next one. */
static char *next_chunk(const char *chunk) {
    return ((char *const *)chunk)[1];
}

/* Visits malloc's last piece, up to the end of the heap, except the words with its length.
 * calloc() clears memory that it takes from this piece: it trusts only memory that is new from
 * the kernel. */
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
