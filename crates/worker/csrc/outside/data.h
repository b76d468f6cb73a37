/* Data that the boot has received from others over connections: recorded, and reported as
 * findings. */
#ifndef SAMOVAR_OUTSIDE_DATA_H
#define SAMOVAR_OUTSIDE_DATA_H

#include <stddef.h>
#include <sys/types.h>

void samovar_data_begin(void);
/* Called while booting. opened: `fd` is now another descriptor than before. */
void samovar_data_opened(int fd);
void samovar_data_asked(int fd, const void *bytes, size_t len);
void samovar_data_responded(int fd, const void *bytes, ssize_t len);
/* Called after the boot, with the findings of the preflight. */
void samovar_data_report(void);

#endif
