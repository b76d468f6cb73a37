/* State of this process: the current request, the kind of the process, the settings. */
#include "sapi/run_state.h"

SAMOVAR_OF_REQUEST const samovar_head *samovar_current;
SAMOVAR_OF_REQUEST bool samovar_responded;
SAMOVAR_OF_REQUEST bool samovar_overrun_ended_script;
int samovar_place = SAMOVAR_RUNS_SCRIPTS;
bool samovar_serving;
bool samovar_below_checkpoint;
const samovar_options *samovar_settings;
