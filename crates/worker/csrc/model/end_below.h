/* The end of a request below a checkpoint. */
#ifndef SAMOVAR_MODEL_END_BELOW_H
#define SAMOVAR_MODEL_END_BELOW_H

#include <stdbool.h>

/* Before the image: what is there by then is not a request's to close. */
void samovar_end_below_prepare(void);
/* At the script's end: no code of the application's runs after it, but that of an error handler. */
bool samovar_ends_unseen(void);
/* Ends the request as php-fpm would, and returns to the image. */
_Noreturn void samovar_end_below(void);

#endif
