/* Warm-up requests below a checkpoint. */
#ifndef SAMOVAR_MODEL_WARMUP_H
#define SAMOVAR_MODEL_WARMUP_H

#include <stdbool.h>

/* True in a child that is to run such a request. Only where a child may use what the boot has
 * opened: its end would close connections. */
bool samovar_warm_up(void);
/* Such a request has come to its end: the process that will be the image is told. Nothing in any
 * other process. */
void samovar_warm_up_report(void);

#endif
