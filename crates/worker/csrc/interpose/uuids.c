/* uuid_generate_time, uuid_generate_time_safe: libuuid's numbers by clock and machine. Two
 * processes that draw at once are told apart by its clock sequence alone, which it makes once in a
 * process: of an image, all workers have the same. So each adds its own place. */
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

/* Loaded for one extension alone, it is not in the order that others are searched in. */
static void *of_library(const char *name) {
    void *library = dlopen("libuuid.so.1", RTLD_LAZY);
    return library ? dlsym(library, name) : NULL;
}

/* Nobody should be here without it; a random number does as well. */
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
