/* FrankenPHP's interface for PHP code. */
#ifndef SAMOVAR_MODEL_FRANKENPHP_H
#define SAMOVAR_MODEL_FRANKENPHP_H

#include <stdbool.h>

/* True if a script that runs as a whole has had its one iteration of
 * frankenphp_handle_request(). */
extern bool samovar_frankenphp_handled;

#endif
