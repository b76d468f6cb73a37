/* Errors of a request: fatal errors, exceptions that no code caught, exceptions that the
 * application rendered as a response of 5xx, and those that it reports. */
#ifndef SAMOVAR_INSIGHT_ERRORS_H
#define SAMOVAR_INSIGHT_ERRORS_H

#include "insight/request_accounting.h"
#include <php.h>

/* Called in MINIT: installs the hooks for errors and exceptions. */
void samovar_errors_startup(void);
/* Records an exception that the application has handled. */
void samovar_errors_report(zend_object *exception);

#endif
