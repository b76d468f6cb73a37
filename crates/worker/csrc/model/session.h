/* Sessions of a booted application's requests. */
#ifndef SAMOVAR_MODEL_SESSION_H
#define SAMOVAR_MODEL_SESSION_H

#include <stdbool.h>

/* Called once, before the first request: finds the session extension. */
void samovar_session_startup(void);
/* Returns false if this PHP has no sessions. */
bool samovar_has_sessions(void);
/* Called at the begin and the end of each request. The end writes and closes the session. */
void samovar_session_begin(void);
void samovar_session_end(void);

/* Called when serving begins: all requests get the handlers that the boot has set, although the
 * end of each request forgets them. */
void samovar_session_save_handlers(void);
/* Called when serving ends. */
void samovar_session_drop_handlers(void);

#endif
