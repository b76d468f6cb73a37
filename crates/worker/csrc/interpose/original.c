/* Finds libc's own functions for the interposed ones. `dlopen` is interposed to keep the search
 * order: PHP loads extensions with RTLD_DEEPBIND, which would search libc first. */
#define _GNU_SOURCE
#include "interpose/original.h"
#include "rollback/taint.h"
#include <dlfcn.h>
#include <string.h>

extern original_function __start_samovar_originals[], __stop_samovar_originals[];

void *samovar_original(original_function *it) {
    if (!it->address) {
        it->address = dlsym(RTLD_NEXT, it->name);
    }
    return it->address;
}

void samovar_look_up_originals(void) {
    for (original_function *it = __start_samovar_originals; it < __stop_samovar_originals; it++) {
        samovar_original(it);
    }
}

void samovar_note_irreversible(leave_reason reason) {
    if (samovar_persistent) {
        samovar_persistent->leave = reason;
    } else {
        samovar_taint(reason);
    }
}

/* If libc is opened by name (FFI), its own functions would be found. So the whole program is
 * returned, where ours come first. */
static bool is_libc(const char *file) {
    const char *const names[] = {"libc.so.6", "libpthread.so.0", "librt.so.1"};
    const char *slash = file ? strrchr(file, '/') : NULL;
    for (size_t i = 0; file && i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(slash ? slash + 1 : file, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

void *dlopen(const char *file, int mode) {
    ORIGINAL(dlopen)
    if (is_libc(file) && !(mode & RTLD_NOLOAD)) {
        return original(NULL, mode & ~RTLD_DEEPBIND);
    }
    return original(file, mode & ~RTLD_DEEPBIND);
}
