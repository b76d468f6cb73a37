/* The look at a booted process before its image is taken: what it has open that forks cannot share
 * or a rollback cannot bring back. */
#ifndef SAMOVAR_OUTSIDE_PREFLIGHT_H
#define SAMOVAR_OUTSIDE_PREFLIGHT_H

#include <stdbool.h>

/* How the application may be run, from the best to the most careful. */
enum {
    FALL_SHARED = 0, /* all workers share one image */
    FALL_WORKER = 1, /* each worker boots by itself */
    FALL_SCRIPT = 2  /* each request runs the whole script */
};

/* After the boot: reports each finding, and says which fall-back they ask for. Once. */
int samovar_preflight(void);
/* The last preflight found nothing that keeps workers from sharing an image. */
bool samovar_preflight_shares(void);

#endif
