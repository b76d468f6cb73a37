/* The ledger as the front is told of it. */
#ifndef SAMOVAR_INSIGHT_REPORT_H
#define SAMOVAR_INSIGHT_REPORT_H

#include "insight/ledger.h"

/* Writes it to its report; the number of bytes, 0 if there is nothing to tell. */
size_t samovar_report_write(ledger_state *l);

#endif
