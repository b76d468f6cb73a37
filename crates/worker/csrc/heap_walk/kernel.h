/* Kernel resources of a process: descriptors, mapped files, children. */
#ifndef SAMOVAR_HEAP_WALK_KERNEL_H
#define SAMOVAR_HEAP_WALK_KERNEL_H

#include "heap_walk/walk.h"

/* A kernel resource. */
typedef struct {
    char kind;          /* CENSUS_DESCRIPTOR, CENSUS_MAPPING, CENSUS_CHILD */
    int number;         /* of a descriptor or a process */
    const char *name;   /* the kernel's name: a file, a socket; empty for a child */
    const char *access; /* of a mapping: "rw-s" */
    uint64_t bytes;     /* of a mapping */
} samovar_holding;

typedef void samovar_visit_holding(const samovar_holding *held, void *data);

void samovar_for_each_open(samovar_visit_holding *visit, void *data);
void samovar_for_each_mapped(samovar_visit_holding *visit, void *data);
void samovar_for_each_child(samovar_visit_holding *visit, void *data);

/* Reports all of them, except the descriptor `own`. */
void samovar_heap_walk_kernel(heap_walk_walk *w, int own);

#endif
