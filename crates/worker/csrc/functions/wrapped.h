/* Calls of PHP's own functions that were noticed. */
#ifndef SAMOVAR_FUNCTIONS_WRAPPED_H
#define SAMOVAR_FUNCTIONS_WRAPPED_H

#include <stdbool.h>

/* Called when PHP has started. */
void samovar_wrap_functions(void);
/* True if a script has called chdir() since this was last cleared. */
extern bool samovar_cwd_changed;
/* True if the filter extension has its copy of this request's $_SERVER. */
extern bool samovar_filter_input_filled;

#endif
