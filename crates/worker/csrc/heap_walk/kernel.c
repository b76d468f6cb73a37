/* Kernel resources of the process, as listed in /proc. */
#include "heap_walk/kernel.h"
#include "outside/descriptor.h"
#include <fcntl.h>
#include <unistd.h>

enum { NAME_BYTES = 64, LINE_BYTES = 4096, LINES_MAX = 65536 };

/* ---- descriptors --------------------------------------------------------------------------- */

typedef struct {
    samovar_visit_holding *visit;
    void *data;
} visitor;

static void see_open(int fd, void *data) {
    const visitor *to = data;
    char name[DESCRIPTOR_TEXT];
    samovar_descriptor_name(fd, name);
    to->visit(&(samovar_holding){.kind = HEAP_WALK_DESCRIPTOR, .number = fd, .name = name},
              to->data);
}

void samovar_for_each_open(samovar_visit_holding *visit, void *data) {
    visitor to = {visit, data};
    samovar_for_each_descriptor(see_open, &to);
}

/* ---- mappings ------------------------------------------------------------------------------ */

static void see_mapped(char *line, const visitor *to) {
    unsigned long from, end, inode;
    char access[8], *path = strchr(line, '/');
    if (sscanf(line, "%lx-%lx %7s %*x %*s %lu", &from, &end, access, &inode) != 4 || !path ||
        inode == 0) {
        return;
    }
    to->visit(
        &(samovar_holding){
            .kind = HEAP_WALK_MAPPING, .name = path, .access = access, .bytes = end - from},
        to->data);
}

void samovar_for_each_mapped(samovar_visit_holding *visit, void *data) {
    static char buffer[LINE_BYTES];
    const visitor to = {visit, data};
    const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    size_t have = 0;
    ssize_t n;
    while (file >= 0 && (n = read(file, buffer + have, sizeof buffer - 1 - have)) > 0) {
        have += (size_t)n;
        buffer[have] = 0;
        char *line = buffer, *end;
        for (int i = 0; i < LINES_MAX && (end = strchr(line, '\n')); i++, line = end + 1) {
            *end = 0;
            see_mapped(line, &to);
        }
        have -= (size_t)(line - buffer);
        memmove(buffer, line, have);
        have = have < sizeof buffer - 1 ? have : 0; /* A line that is too long is ignored. */
    }
    if (file >= 0) {
        close(file);
    }
}

/* ---- children ------------------------------------------------------------------------------ */

void samovar_for_each_child(samovar_visit_holding *visit, void *data) {
    char text[LINE_BYTES], path[NAME_BYTES];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t len = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) {
        close(file);
    }
    text[len > 0 ? len : 0] = 0;
    char *rest = NULL;
    for (char *pid = strtok_r(text, " ", &rest); pid; pid = strtok_r(NULL, " ", &rest)) {
        visit(&(samovar_holding){.kind = HEAP_WALK_CHILD, .number = atoi(pid), .name = ""}, data);
    }
}

/* ---- for a heap walk ----------------------------------------------------------------------- */

typedef struct {
    heap_walk_walk *walk;
    int own;
} heap_walk_visit;

static void tell(const samovar_holding *held, void *data) {
    const heap_walk_visit *to = data;
    char number[NAME_BYTES];
    if (held->kind == HEAP_WALK_DESCRIPTOR && held->number == to->own) {
        return;
    }
    snprintf(number, sizeof number, "%d", held->number);
    heap_walk_node n = {.kind = held->kind, .key = samovar_heap_walk_text(number)};
    if (held->kind == HEAP_WALK_MAPPING) {
        n.key = samovar_heap_walk_text(held->name);
        n.text = samovar_heap_walk_text(held->access);
        n.bytes = held->bytes;
    } else if (held->kind == HEAP_WALK_DESCRIPTOR) {
        n.text = samovar_heap_walk_text(held->name);
    }
    samovar_walk_fact(to->walk, &n);
}

void samovar_heap_walk_kernel(heap_walk_walk *w, int own) {
    heap_walk_visit to = {w, own};
    samovar_for_each_open(tell, &to);
    samovar_for_each_mapped(tell, &to);
    samovar_for_each_child(tell, &to);
}
