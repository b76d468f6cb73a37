/* Objects whose destruction has observable effects. */
#ifndef SAMOVAR_MODEL_SKIPPABLE_DESTRUCTION_H
#define SAMOVAR_MODEL_SKIPPABLE_DESTRUCTION_H

#include <php.h>
#include <stdbool.h>
#include <stdint.h>

/* Called in MINIT. */
void samovar_skippable_startup(void);
/* Called before the image is taken: prepares objects of the boot for the ends of requests. */
void samovar_skippable_prepare(void);
/* Returns true if the end of a request must free the object: freeing it has more effects than
 * freeing memory, and the object is not the boot's. */
bool samovar_is_freed_seen(uint32_t handle, const zend_object *object);
/* Returns true if no object's destruction has observable effects: no code runs, and only memory
 * is freed. Called when no code of the application follows, except an error handler. Checks each
 * object, once for the whole end of a request. */
bool samovar_objects_are_skippable(void);
/* Returns true if that was so, and nothing has happened since that could have created another
 * object. */
bool samovar_objects_skipped(void);

#endif
