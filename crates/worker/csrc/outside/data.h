/* What the boot has been told by others over connections: noted, and reported as findings. */
#ifndef SAMOVAR_OUTSIDE_DATA_H
#define SAMOVAR_OUTSIDE_DATA_H

#include <stddef.h>
#include <sys/types.h>

void samovar_data_begin(void);
/* While booting. `fd` is another descriptor than before. */
void samovar_data_opened(int fd);
void samovar_data_asked(int fd, const void *bytes, size_t len);
void samovar_data_answered(int fd, const void *bytes, ssize_t len);
/* After the boot, with the findings of the preflight. */
void samovar_data_report(void);

#endif
