/* The constant PHP_SAPI. */
#ifndef SAMOVAR_SAPI_NAME_H
#define SAMOVAR_SAPI_NAME_H

/* Called while PHP compiles: the constant may have another value in another process. */
void samovar_sapi_name_varies(void);
/* Called while constants are freed. */
void samovar_sapi_name_stays(void);
/* Sets the constant to `name` in this process. */
void samovar_sapi_rename(const char *name);

#endif
