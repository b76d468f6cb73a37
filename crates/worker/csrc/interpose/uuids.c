/* uuid_generate_time, uuid_generate_time_safe: libuuid's IDs, based on clock and machine. IDs
 * that two processes draw at the same time differ only in the clock sequence. libuuid makes that
 * once per process, so all workers of an image have the same one. So each worker adds its own
 * number. */
#define _GNU_SOURCE
#include "boundary.h"
#include "interpose/original.h"
#include <dlfcn.h>
#include <string.h>
#include <sys/random.h>

typedef unsigned char uuid_bytes[16];

/* RFC 9562, 5.1: two bits of variant, then the sequence. */
enum { SEQUENCE_AT = 8, SEQUENCE_MASK = 0x3fff, VERSION_AT = 6 };

int uuid_generate_time_safe(uuid_bytes out);
void uuid_generate_time(uuid_bytes out);

static void tell_apart(uuid_bytes out) {
    const unsigned former = (unsigned)out[SEQUENCE_AT] << 8 | out[SEQUENCE_AT + 1];
    const unsigned own = (former + samovar_place_among_workers()) & SEQUENCE_MASK;
    out[SEQUENCE_AT] = (unsigned char)((former & ~(unsigned)SEQUENCE_MASK) >> 8 | own >> 8);
    out[SEQUENCE_AT + 1] = (unsigned char)own;
}

/* A library that was loaded for one extension only is not in the global search order. */
static void *of_library(const char *name) {
    void *library = dlopen("libuuid.so.1", RTLD_LAZY);
    return library ? dlsym(library, name) : NULL;
}

/* Fallback without the library, which is not expected. A random number does as well. */
static int draw(uuid_bytes out) {
    if (getrandom(out, sizeof(uuid_bytes), 0) != (ssize_t)sizeof(uuid_bytes)) {
        memset(out, 0, sizeof(uuid_bytes));
        return -1;
    }
    out[VERSION_AT] = (unsigned char)((out[VERSION_AT] & 0x0f) | 0x40);
    out[SEQUENCE_AT] = (unsigned char)((out[SEQUENCE_AT] & 0x3f) | 0x80);
    return 0;
}

int uuid_generate_time_safe(uuid_bytes out) {
    ORIGINAL(uuid_generate_time_safe)
    int (*const found_now)(unsigned char *) =
        original ? original : (int (*)(unsigned char *))of_library("uuid_generate_time_safe");
    if (!found_now) {
        return draw(out);
    }
    const int result = found_now(out);
    tell_apart(out);
    return result;
}

void uuid_generate_time(uuid_bytes out) {
    uuid_generate_time_safe(out);
}
