/* The checkpoint model: where the image is taken. */
#ifndef SAMOVAR_MODEL_CHECKPOINT_H
#define SAMOVAR_MODEL_CHECKPOINT_H

#include <stdbool.h>

void samovar_checkpoint(void);
/* A request that runs as a whole script meets what is there to be booted ahead. */
void samovar_meets_boot(void);
/* Takes the image here; returns true in each worker, once and after each of its rollbacks. */
bool samovar_take_image(void);
/* Lets workers be forked here that never roll back; returns in each. */
void samovar_share_boot(void);

#endif
