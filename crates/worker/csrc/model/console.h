/* PHP's command line in this process. */
#ifndef SAMOVAR_MODEL_CONSOLE_H
#define SAMOVAR_MODEL_CONSOLE_H

#include <stdbool.h>

/* Turns this process into PHP's command line `words`, before PHP's first request. Without
 * `forces_limits`, the memory limit and the treatment of errors are those of php.ini. */
void samovar_console_begin(int count, char **words, bool forces_limits);
/* Removes the functions that PHP has only in a web server. */
void samovar_hide_functions_of_servers(void);
/* Runs the script `file` with the arguments `words`, then shuts PHP down. Returns the exit status.
 * With `begin`, all settings that the command line does not force are those of php.ini, `begin` is
 * called first in PHP's request, and the process ends after the script. */
int samovar_console_run(int count, char **words, const char *file, void (*begin)(void));

#endif
