/* The accounting of a request in the form that the front reads. */
#ifndef SAMOVAR_INSIGHT_REPORT_H
#define SAMOVAR_INSIGHT_REPORT_H

#include "insight/accounting_record.h"
#include <stddef.h>

/* Writes the report. Returns its number of bytes, 0 if it is empty. */
size_t samovar_report_write(request_accounting_state *l);

#endif
