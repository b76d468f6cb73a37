/* The setting checkpoint_after. */
#ifndef SAMOVAR_MODEL_INCLUSION_H
#define SAMOVAR_MODEL_INCLUSION_H

/* Called around a boot: they place the checkpoint after a file that the script includes. */
void samovar_watch_inclusions(void);
void samovar_unwatch_inclusions(void);

#endif
