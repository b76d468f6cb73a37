/* Copies many pages: two at a time, because the processor prefetches each page as a separate
 * stream, and a stream ends at the end of a page. Bypasses the caches: data that exceeds them
 * would be fetched only to be evicted again. */
#include "memory/copy.h"
#include "memory/image.h"
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>

/* 64 bytes: one cache line. */
static void copy_line(__m128i *to, const __m128i *from) {
    const __m128i a = _mm_load_si128(from), b = _mm_load_si128(from + 1);
    const __m128i c = _mm_load_si128(from + 2), d = _mm_load_si128(from + 3);
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
}

void samovar_copy_two(page_copy a, page_copy b) {
    __m128i *to_a = (__m128i *)a.to, *to_b = (__m128i *)b.to;
    const __m128i *from_a = (const __m128i *)a.from, *from_b = (const __m128i *)b.from;
    for (size_t i = 0; i < IMAGE_PAGE / sizeof(__m128i); i += 4) {
        copy_line(to_a + i, from_a + i);
        copy_line(to_b + i, from_b + i);
    }
}

void samovar_copies_done(void) {
    _mm_sfence();
}
#else
void samovar_copy_two(page_copy a, page_copy b) {
    memcpy(a.to, a.from, IMAGE_PAGE);
    memcpy(b.to, b.from, IMAGE_PAGE);
}

void samovar_copies_done(void) {}
#endif
