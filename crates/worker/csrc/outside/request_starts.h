/* Extensions whose work at the start of a request is not repeated for requests of a booted
 * application. */
#ifndef SAMOVAR_OUTSIDE_REQUEST_STARTS_H
#define SAMOVAR_OUTSIDE_REQUEST_STARTS_H

/* Reports them as findings of the boot. */
void samovar_request_starts_report(void);

#endif
