/* FrankenPHP's userland contract. */
#ifndef SAMOVAR_MODEL_FRANKENPHP_H
#define SAMOVAR_MODEL_FRANKENPHP_H

#include <stdbool.h>

/* A script that runs whole has had its one turn of frankenphp_handle_request(). */
extern bool samovar_frankenphp_handled;

#endif
