/* The free pages of the Zend heap and of malloc's, which need no way back. */
#ifndef SAMOVAR_MEMORY_HEAP_H
#define SAMOVAR_MEMORY_HEAP_H

/* When PHP has started: where the heap keeps what is needed here. */
void samovar_heap_learn(void);
/* From now on requests use free pages, and not the gaps in used ones. */
void samovar_heap_close(void);
/* Shows each run of free pages, [from, to). */
typedef void samovar_free_visitor(void *data, char *from, const char *to);
void samovar_heap_for_each_free(samovar_free_visitor *visit, void *data);

#endif
