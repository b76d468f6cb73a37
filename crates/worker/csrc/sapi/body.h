/* The request's body, which a checkpoint's resume hook may have to have read twice. */
#ifndef SAMOVAR_SAPI_BODY_H
#define SAMOVAR_SAPI_BODY_H

#include <stdbool.h>
#include <stddef.h>

/* A part of the body; 0 at its end. */
size_t samovar_body_read(char *to, size_t room);
/* What is read from here on is kept beside, to be read again. */
void samovar_body_keep(void);
/* From here on it is read as if for the first time. False: there was no memory to keep it. */
bool samovar_body_rewind(void);
/* It need not be kept: what was read is read. */
void samovar_body_forget(void);

#endif
