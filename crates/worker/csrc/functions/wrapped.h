/* What functions of PHP itself have told. */
#ifndef SAMOVAR_FUNCTIONS_WRAPPED_H
#define SAMOVAR_FUNCTIONS_WRAPPED_H

#include <stdbool.h>

/* When PHP has started. */
void samovar_wrap_functions(void);
/* A script called chdir() since this was last cleared. */
extern bool samovar_cwd_changed;
/* The filter extension has its copy of this request's $_SERVER. */
extern bool samovar_filter_input_filled;

#endif
