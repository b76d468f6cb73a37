/* Warm-up requests below a checkpoint. */
#ifndef SAMOVAR_MODEL_WARMUP_H
#define SAMOVAR_MODEL_WARMUP_H

#include <stdbool.h>

/* Returns true in a child that must run such a request. Only used where a child may use the
 * connections of the boot: the end of the child would close them. */
bool samovar_warm_up(void);
/* Called at the end of such a request: reports to the process that will be the image. Does
 * nothing in any other process. */
void samovar_warm_up_report(void);

#endif
