/* Makes PHP collect garbage cycles of requests between them, not during them. */
#ifndef SAMOVAR_MODEL_COLLECT_H
#define SAMOVAR_MODEL_COLLECT_H

#include <stdbool.h>

/* Called when requests begin: from here on only samovar_collect_between() runs PHP's collector,
 * unless code calls it or memory runs out. */
void samovar_collect_begin(void);
/* From here on PHP decides again. */
void samovar_collect_end(void);
/* Called when a resident worker is about to wait for its next request. Returns false if code
 * that ran here has failed fatally. */
bool samovar_collect_between(void);
/* Called when it has got one. */
void samovar_collect_waited(void);

#endif
