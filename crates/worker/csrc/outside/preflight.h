/* The check of a booted process before its image is taken: open resources that forks cannot
 * share, or a rollback cannot restore. */
#ifndef SAMOVAR_OUTSIDE_PREFLIGHT_H
#define SAMOVAR_OUTSIDE_PREFLIGHT_H

#include <stdbool.h>

/* Ways to run the application, from the best to the most careful. */
enum {
    FALL_SHARED = 0, /* all workers share one image */
    FALL_WORKER = 1, /* each worker boots the application itself */
    FALL_SCRIPT = 2  /* each request runs the whole script */
};

/* Called once, after the boot: reports each finding, and returns the fallback that they require. */
int samovar_preflight(void);
/* Returns true if the last preflight found nothing that prevents workers from sharing an image. */
bool samovar_preflight_shares(void);

#endif
