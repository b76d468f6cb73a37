/* Random generators: new seeds after every rollback and fork. */
#ifndef SAMOVAR_ROLLBACK_RESEED_H
#define SAMOVAR_ROLLBACK_RESEED_H

#include "memory/persistent.h"
#include <php.h>

/* Entropy drawn for many rollbacks at once. */
typedef struct {
    uint8_t entropy[4096];
    size_t entropy_left;
} reseed_state;

PERSISTENT_STATE(reseed_state, samovar_reseed_state, reseed);

/* Handles of random engines that were made with an explicit seed; NULL: none. */
extern HashTable *samovar_seeded_engines;

/* Called when PHP has started. */
void samovar_reseed_startup(void);
/* Called before the image is taken. Otherwise each reset of a generator would begin with its
 * whole initialization. */
void samovar_reseed_warm_up(void);
/* Finds the existing generators. Self-seeding generators forget their state. */
void samovar_reseed_prepare(void);
/* Called before libc's generators are used: gives them a seed for this request. */
void samovar_reseed_libc(void);
/* Reseeds the generators: none of them continues from its former state. */
void samovar_reseed(void);

#endif
