/* Xdebug's work at the start and the end of a request of a booted application. */
#ifndef SAMOVAR_MODEL_DEBUGGER_H
#define SAMOVAR_MODEL_DEBUGGER_H

/* Called when the boot ends. */
void samovar_debugger_startup(void);
/* Called for each request, when its superglobals are filled. */
void samovar_debugger_begin(void);
/* Called after the shutdown functions of a resident request. */
void samovar_debugger_end(void);

#endif
