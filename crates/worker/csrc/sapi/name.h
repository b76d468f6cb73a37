/* The constant PHP_SAPI. */
#ifndef SAMOVAR_SAPI_NAME_H
#define SAMOVAR_SAPI_NAME_H

/* While PHP compiles: it may have another value in another process. */
void samovar_sapi_name_varies(void);
/* While constants are freed. */
void samovar_sapi_name_stays(void);
/* In this process it is `name`. */
void samovar_sapi_rename(const char *name);

#endif
