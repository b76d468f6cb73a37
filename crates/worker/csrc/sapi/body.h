/* The request's body. A checkpoint's resume hook may require that it is read twice. */
#ifndef SAMOVAR_SAPI_BODY_H
#define SAMOVAR_SAPI_BODY_H

#include <stdbool.h>
#include <stddef.h>

/* Reads a part of the body. Returns 0 at its end. */
size_t samovar_body_read(char *to, size_t room);
/* Data that is read from here on is also kept, to be read again. */
void samovar_body_keep(void);
/* From here on the body is read from its start again. Returns false if there was no memory to
 * keep it. */
bool samovar_body_rewind(void);
/* Ends the keeping: the body is not read again. */
void samovar_body_forget(void);

#endif
