/* Memory of a worker that survives a rollback: its begin and its end. */
#include "memory/persistent.h"
#include "boundary.h"

persistent_memory *samovar_persistent;

bool samovar_persistent_begin(void) {
    samovar_persistent = samovar_shared_memory(sizeof *samovar_persistent);
    return samovar_persistent != NULL;
}

void samovar_persistent_end(void) {
    samovar_persistent = NULL;
}
