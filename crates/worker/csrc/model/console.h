/* PHP's command line in this process. */
#ifndef SAMOVAR_MODEL_CONSOLE_H
#define SAMOVAR_MODEL_CONSOLE_H

/* Runs the script `file` with the arguments `words`, then shuts PHP down. Returns the exit status.
 * With `begin`, all settings that the command line does not force are those of php.ini, `begin` is
 * called first in PHP's request, and the process ends after the script. */
int samovar_console_run(int count, char **words, const char *file, void (*begin)(void));

#endif
