/* When PHP collects garbage cycles of requests: between them, not in them. */
#ifndef SAMOVAR_MODEL_COLLECT_H
#define SAMOVAR_MODEL_COLLECT_H

#include <stdbool.h>

/* Requests begin: from here on PHP's collector is asked for by samovar_collect_between() alone,
 * unless code asks for it or memory runs out. */
void samovar_collect_begin(void);
/* PHP decides again. */
void samovar_collect_end(void);
/* A resident worker is about to wait for its next request; false: what has run was fatal. */
bool samovar_collect_between(void);
/* It has got one. */
void samovar_collect_waited(void);

#endif
