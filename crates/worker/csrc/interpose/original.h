/* What the interposed functions share: libc's own functions, and the notes that several take.
 *
 * This folder defines functions of libc. The dynamic linker finds them before libc's, for libphp
 * and for every extension, because the executable comes first in the search order (build.rs exports
 * them). What libc calls inside itself is not seen: a rollback notices that by its effect.
 *
 * Until a worker rolls back, `samovar_persistent` is NULL, each is the original, and what nobody
 * else puts back is noted in rollback/stain.c. The folder includes from memory/, outside/ and
 * rollback/, and from nothing above. */
#ifndef SAMOVAR_INTERPOSE_ORIGINAL_H
#define SAMOVAR_INTERPOSE_ORIGINAL_H

#include "leave.h"

/* A function of libc, found by name. */
typedef struct {
    const char *name;
    void *address;
} original_function;

void *samovar_original(original_function *it);

/* Declares `original`, libc's function of that name. What is a system call alone needs none. All
 * are looked up before there is an image, which would forget them after each request; a section
 * holds them together. */
#define ORIGINAL(function)                                                                         \
    static original_function found                                                                 \
        __attribute__((section("samovar_originals"), used)) = {#function, NULL};                   \
    __typeof__(function) *const original = (__typeof__(function) *)samovar_original(&found);

/* Before there is an image. */
void samovar_look_up_originals(void);

/* Notes for the way back: sets a flag of process_state or hot_state, in a worker that rolls back.
 */
#define NOTE(flag)                                                                                 \
    do {                                                                                           \
        if (samovar_persistent) {                                                                  \
            samovar_persistent->flag = true;                                                       \
        }                                                                                          \
    } while (0)

/* What only a new process undoes: of all models, the worker leaves after its answer. */
void samovar_note_irreversible(leave_reason reason);

#endif
