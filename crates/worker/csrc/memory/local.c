/* Thread-local variables of libraries that were loaded after the program began. libc allocates
 * them when a thread first uses them, under locks of the dynamic linker. If a request did that,
 * it would be done again after each rollback, and would write to six pages. */
#define _GNU_SOURCE
#include "memory/local.h"
#include <link.h>
#include <stddef.h>

/* The dynamic linker's function, as the compiler calls it (ELF Handling For Thread-Local
 * Storage, 3.4). */
typedef struct {
    unsigned long module, offset;
} tls_place;
void *__tls_get_addr(tls_place *place);

static int settle(struct dl_phdr_info *library, size_t size, void *argument) {
    (void)size;
    (void)argument;
    if (library->dlpi_tls_modid != 0) {
        __tls_get_addr(&(tls_place){library->dlpi_tls_modid, 0});
    }
    return 0;
}

void samovar_locals_settle(void) {
    dl_iterate_phdr(settle, NULL);
}
