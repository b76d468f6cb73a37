/* What each request below a checkpoint begins with: something of the application's that may refuse
 * a stale image. */
#ifndef SAMOVAR_MODEL_RESUME_H
#define SAMOVAR_MODEL_RESUME_H

#include <php.h>

/* What checkpoint() was given: it lives as long as the process. */
void samovar_resume_with(zend_fcall_info *info, zend_fcall_info_cache *cache);
/* The request's body is read from here on, and may have to be read again. */
void samovar_resume_begin(void);
/* Runs what the request begins with. Does not return when that says that the image is stale. */
void samovar_resume(void);
/* When the image is stale: runs the request as a whole script, and leaves. */
void samovar_end_stale(void);
/* Whether it would: the image does not fit the request at hand. */
bool samovar_is_stale(void);

#endif
