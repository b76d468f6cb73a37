/* Whose end can be seen. */
#ifndef SAMOVAR_MODEL_UNSEEN_H
#define SAMOVAR_MODEL_UNSEEN_H

#include <php.h>
#include <stdbool.h>
#include <stdint.h>

/* In MINIT. */
void samovar_unseen_startup(void);
/* Before the image: objects of the boot are prepared for the ends of requests. */
void samovar_unseen_prepare(void);
/* Whether freeing it does more than give memory back, and is for the end of a request to do: it is
 * not the boot's. */
bool samovar_is_freed_seen(uint32_t handle, const zend_object *object);
/* Whether nobody would see the end of any object there is: no code runs, and nothing but memory is
 * given back. To be asked when no code of the application's follows, but that of an error handler:
 * each object is looked at, once for the whole end of a request. */
bool samovar_objects_end_unseen(void);
/* That was so, and nothing has happened since that could have made another object. */
bool samovar_objects_ended_unseen(void);

#endif
