/* Random generators: new seeds after every rollback and fork. */
#ifndef SAMOVAR_ROLLBACK_RESEED_H
#define SAMOVAR_ROLLBACK_RESEED_H

#include <php.h>

/* Entropy drawn for many rollbacks at once. */
typedef struct {
    uint8_t entropy[4096];
    size_t entropy_left;
} reseed_state;

/* Handles of random engines that were made with a seed of their own; NULL: none. */
extern HashTable *samovar_seeded_engines;

/* When PHP has started. */
void samovar_reseed_startup(void);
/* Before the image: or each reset of a generator would begin with all of its start. */
void samovar_reseed_warm_up(void);
/* Finds the generators that are there. Those that seed themselves forget what they have drawn. */
void samovar_reseed_prepare(void);
/* Before libc's generators are used: they have a seed of this request's. */
void samovar_reseed_libc(void);
/* None of them goes on where it stood. */
void samovar_reseed(void);

#endif
