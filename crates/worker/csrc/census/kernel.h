/* What a process holds of the kernel: descriptors, mapped files, children. */
#ifndef SAMOVAR_CENSUS_KERNEL_H
#define SAMOVAR_CENSUS_KERNEL_H

#include "census/walk.h"

/* A thing that is held. */
typedef struct {
    char kind;          /* CENSUS_DESCRIPTOR, CENSUS_MAPPING, CENSUS_CHILD */
    int number;         /* of a descriptor or a process */
    const char *name;   /* as the kernel calls it: a file, a socket; empty for a child */
    const char *access; /* of a mapping: "rw-s" */
    uint64_t bytes;     /* of a mapping */
} samovar_holding;

typedef void samovar_visit_holding(const samovar_holding *held, void *data);

void samovar_for_each_open(samovar_visit_holding *visit, void *data);
void samovar_for_each_mapped(samovar_visit_holding *visit, void *data);
void samovar_for_each_child(samovar_visit_holding *visit, void *data);

/* All of them, without the descriptor `own`. */
void samovar_census_kernel(census_walk *w, int own);

#endif
