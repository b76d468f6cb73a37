/* Copies of many pages, more than the processor's caches hold. */
#ifndef SAMOVAR_MEMORY_COPY_H
#define SAMOVAR_MEMORY_COPY_H

/* Both pointers are at the beginning of a page. */
typedef struct {
    char *to;
    const char *from;
} page_copy;

void samovar_copy_two(page_copy a, page_copy b);
/* Called after the last copies, before other code may read them. */
void samovar_copies_done(void);

#endif
