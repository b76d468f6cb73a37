/* Entries that the boot has written into superglobals. Each request of a booted application gets
 * new superglobals, and these entries are added to them again. */
#ifndef SAMOVAR_SAPI_BOOT_GLOBALS_H
#define SAMOVAR_SAPI_BOOT_GLOBALS_H

#include <php.h>

/* Called at the checkpoint, or when serving begins: stores the entries. */
void samovar_boot_globals_save(void);
/* Called when serving ends. */
void samovar_boot_globals_drop(void);
/* Called for each request, when its superglobals are filled. */
void samovar_boot_globals_add(void);

/* Superglobals as they are before Samovar\warmup(), whose artificial requests write to them. */
enum { BOOT_GLOBALS = 7 };
typedef struct {
    zval arrays[BOOT_GLOBALS];
} boot_globals;
void samovar_boot_globals_note(boot_globals *now);
/* Restores them, and frees `now`. */
void samovar_boot_globals_restore(boot_globals *now);

#endif
