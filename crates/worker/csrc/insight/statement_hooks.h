/* Hooks for the functions of extensions that execute statements. */
#ifndef SAMOVAR_INSIGHT_STATEMENT_HOOKS_H
#define SAMOVAR_INSIGHT_STATEMENT_HOOKS_H

/* Called once in the template, when all extensions have started. */
void samovar_statement_hooks_startup(void);

#endif
