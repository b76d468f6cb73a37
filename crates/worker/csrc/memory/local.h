/* Thread-local memory of libraries. */
#ifndef SAMOVAR_MEMORY_LOCAL_H
#define SAMOVAR_MEMORY_LOCAL_H

/* Called before there is an image: allocates the thread-local memory of all loaded libraries. */
void samovar_locals_settle(void);

#endif
