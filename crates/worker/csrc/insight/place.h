/* The current position in PHP code. */
#ifndef SAMOVAR_INSIGHT_PLACE_H
#define SAMOVAR_INSIGHT_PLACE_H

#include "insight/request_accounting.h"

/* Stores "App\\Shop::show() /srv/src/Shop.php:12". Empty if no code of the application runs. A
 * text that is too long is cut at its start. */
void samovar_place_note(short_name *place);

#endif
