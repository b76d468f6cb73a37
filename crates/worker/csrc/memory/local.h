/* What libraries keep per thread. */
#ifndef SAMOVAR_MEMORY_LOCAL_H
#define SAMOVAR_MEMORY_LOCAL_H

/* Before an image: its thread has the memory of all libraries that are loaded. */
void samovar_locals_settle(void);

#endif
