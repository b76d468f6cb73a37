/* Texts of a report. */
#ifndef SAMOVAR_INSIGHT_NAMES_H
#define SAMOVAR_INSIGHT_NAMES_H

#include "insight/accounting_record.h"
#include <stddef.h>

/* Truncates `text`, and replaces bytes that are not UTF-8. */
void samovar_short_name(short_name *to, const char *text, size_t len);
/* The same for a text of up to `room` bytes. Returns the number of bytes written. */
size_t samovar_utf8_copy(char *to, size_t room, const char *text, size_t len);

#endif
