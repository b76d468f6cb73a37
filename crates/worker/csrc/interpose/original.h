/* Common parts of the interposed functions: libc's own functions, and records that several of
 * them make.
 *
 * This folder defines functions of libc. The dynamic linker finds them before libc's, for libphp
 * and for every extension, because the executable comes first in the search order (build.rs
 * exports them). Calls inside libc are not seen; a rollback notices them by their effect.
 *
 * Until a worker rolls back, `samovar_persistent` is NULL, and each function acts like the
 * original. Changes that no other code undoes are then recorded in rollback/taint.c. The folder
 * includes from memory/, outside/ and rollback/, and from nothing above. */
#ifndef SAMOVAR_INTERPOSE_ORIGINAL_H
#define SAMOVAR_INTERPOSE_ORIGINAL_H

#include "memory/persistent.h"
#include <stddef.h>

/* A function of libc, found by name. */
typedef struct {
    const char *name;
    void *address;
} original_function;

void *samovar_original(original_function *it);

/* Declares `original`, libc's function of that name. A function that is only a system call does
 * not need it. All originals are looked up before there is an image, because a rollback would
 * forget the lookups after each request. They are together in one section. */
#define ORIGINAL(function)                                                                         \
    static original_function found                                                                 \
        __attribute__((section("samovar_originals"), used)) = {#function, NULL};                   \
    __typeof__(function) *const original = (__typeof__(function) *)samovar_original(&found);

/* Called before there is an image. */
void samovar_look_up_originals(void);

/* Records a change for the rollback: sets a flag of a unit's state in a worker that rolls back,
 * as in NOTE(samovar_process_state()->cwd_changed). */
#define NOTE(flag)                                                                                 \
    do {                                                                                           \
        if (samovar_persistent) {                                                                  \
            (flag) = true;                                                                         \
        }                                                                                          \
    } while (0)

/* Records a change that only a new process undoes. In all models, the worker leaves after its
 * response. */
void samovar_note_irreversible(leave_reason reason);

#endif
