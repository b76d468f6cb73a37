/* The end of a request below a checkpoint. */
#ifndef SAMOVAR_MODEL_END_BELOW_H
#define SAMOVAR_MODEL_END_BELOW_H

#include <stdbool.h>

/* Called before the image is taken: a request does not close resources that exist by then. */
void samovar_end_below_prepare(void);
/* Called at the end of the script. Returns true if no code of the application runs after it,
 * except an error handler. */
bool samovar_is_skippable(void);
/* Ends the request as php-fpm would, and returns to the image. */
_Noreturn void samovar_end_below(void);

#endif
