/* Where PHP stands. */
#ifndef SAMOVAR_INSIGHT_PLACE_H
#define SAMOVAR_INSIGHT_PLACE_H

#include "insight/ledger.h"

/* "App\\Shop::show() /srv/src/Shop.php:12"; empty where no code of the application runs. Of a place
 * that is too long its end is kept. */
void samovar_place_note(short_name *place);

#endif
