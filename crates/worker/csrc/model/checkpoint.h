/* The checkpoint model: where the image is taken. */
#ifndef SAMOVAR_MODEL_CHECKPOINT_H
#define SAMOVAR_MODEL_CHECKPOINT_H

#include <stdbool.h>

void samovar_checkpoint(void);
/* Called when a request that runs as a whole script reaches code that can be booted ahead. */
void samovar_meets_boot(void);
/* Takes the image here. Returns true in each worker, once and after each of its rollbacks. */
bool samovar_take_image(void);
/* Has workers forked here that never roll back. Returns in each of them. */
void samovar_share_boot(void);

#endif
