/* The free pages of the Zend heap and of malloc, which need not be restored. */
#ifndef SAMOVAR_MEMORY_HEAP_H
#define SAMOVAR_MEMORY_HEAP_H

/* Called when PHP has started: learns where the heap keeps the structures that are needed here. */
void samovar_heap_learn(void);
/* From now on requests use free pages, not the gaps in used ones. */
void samovar_heap_close(void);
/* Gets each run of free pages, [from, to). */
typedef void samovar_free_visitor(void *data, char *from, const char *to);
void samovar_heap_for_each_free(samovar_free_visitor *visit, void *data);

#endif
