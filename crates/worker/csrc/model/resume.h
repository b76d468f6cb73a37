/* Start of each request below a checkpoint: code of the application that may reject a stale
 * image. */
#ifndef SAMOVAR_MODEL_RESUME_H
#define SAMOVAR_MODEL_RESUME_H

#include "ring.h"
#include <php.h>

/* Keeps the callable that was passed to checkpoint(), for the life of the process. */
void samovar_resume_with(zend_fcall_info *info, zend_fcall_info_cache *cache);
/* From here on the request's body is read, and may have to be read again. */
void samovar_resume_begin(void);
/* Runs that code. Does not return if it finds that the image is stale. */
void samovar_resume(void);
/* If the image is stale: ends the booted application without effects, so that this process can run
 * a whole script. Returns the request that it must run. NULL: the image fits. */
const samovar_head *samovar_end_stale(void);
/* Returns true if the image does not fit the current request. */
bool samovar_is_stale(void);

#endif
