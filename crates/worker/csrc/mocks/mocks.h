/* Samovar\Mock: doubles of functions, methods, constants and `new`, for tests.
 *
 * Only the process of `samovar test` has them (samovar_settings->mocks). The engine's hooks are set
 * before it compiles the first file; a call pays for one comparison while there is no double.
 * Nothing here writes into the memory of opcache, which is off in such a process.
 *
 * doubles.c: the table of doubles of functions, methods and classes
 * running.c: calls of doubles
 * calls.c: the engine's hooks, calls of originals, the end of a test
 * makers.c: `new`
 * exits.c: exit() before PHP 8.4
 * constants.c: constants
 * lookup.c: functions, classes and methods by name
 * mock.c: the class */
#ifndef SAMOVAR_MOCKS_H
#define SAMOVAR_MOCKS_H

#include <stdbool.h>
#include <stdint.h>

/* Values of samovar_settings->mocks. */
enum { SAMOVAR_MOCKS_NONE = 0, SAMOVAR_MOCKS_OFF = 1, SAMOVAR_MOCKS_ON = 2 };

/* Registers the class, in MINIT. Without doubles its methods throw. */
void samovar_mock_class_startup(void);
/* Sets the hooks, after all extensions have started. */
void samovar_mocks_startup(void);
/* The end of PHP's request: no double survives it. */
void samovar_mocks_end(void);

/* Returns a number that increases with each double. */
uint64_t samovar_mocks_number(void);
/* Removes the doubles that have a higher number. */
void samovar_mocks_restore_after(uint64_t number);

#endif
