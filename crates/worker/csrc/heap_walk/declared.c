/* Searches a source file for the line of a declaration, because PHP keeps only the line of the
 * class. */
#define _GNU_SOURCE
#include "heap_walk/declared.h"
#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const size_t SOURCE_BYTES_MAX = 4 << 20;

static bool has_variable(const char *line, size_t len, const char *name, size_t name_len) {
    const char *end = line + len;
    for (const char *at = line; (at = memmem(at, (size_t)(end - at), name, name_len)); at++) {
        const char *behind = at + name_len;
        if (behind == end || !(isalnum((unsigned char)*behind) || *behind == '_')) {
            return true;
        }
    }
    return false;
}

static uint32_t look(const char *source, size_t len, const char *name, uint32_t from, uint32_t to) {
    const char *end = source + len;
    uint32_t line = 1;
    for (const char *at = source; at < end && line <= to; line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const size_t width = (size_t)((newline ? newline : end) - at);
        if (line >= from && memmem(at, width, "static", strlen("static")) &&
            has_variable(at, width, name, strlen(name))) {
            return line;
        }
        at += width + 1;
    }
    return from;
}

uint32_t samovar_declared_line(const char *file, const char *name, uint32_t line,
                               uint32_t line_end) {
    const char *variable = strrchr(name, '$');
    const int from = variable ? open(file, O_RDONLY | O_CLOEXEC) : -1;
    struct stat info;
    uint32_t found = line;
    if (from >= 0 && fstat(from, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0 &&
        (size_t)info.st_size <= SOURCE_BYTES_MAX) {
        const size_t len = (size_t)info.st_size;
        /* Read, not mapped: if the file is truncated meanwhile, access to a mapping kills the
         * process. */
        char *source = (void *)syscall(SYS_mmap, NULL, len, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (source != MAP_FAILED) {
            const ssize_t have = read(from, source, len);
            found = have > 0 ? look(source, (size_t)have, variable, line, line_end) : line;
            syscall(SYS_munmap, source, len);
        }
    }
    if (from >= 0) {
        close(from);
    }
    return found;
}
