/* The functions of the pinba extension, for applications that are instrumented with them. */
#ifndef SAMOVAR_FUNCTIONS_PINBA_H
#define SAMOVAR_FUNCTIONS_PINBA_H

#include "insight/timers.h"

/* Called in MINIT. Does nothing if the extension itself is loaded. */
void samovar_pinba_startup(int module_number);
/* Called when a request of PHP begins and ends. */
void samovar_pinba_begin(void);
void samovar_pinba_end(void);
/* Invalidates the timer for code that still has its resource. */
void samovar_pinba_drop(samovar_timer *t);

/* ---- between the files of pinba ------------------------------------------------------------ */

/* Name and data of the request, as the application has set them. */
typedef struct {
    zend_string *script_name, *hostname, *server_name, *schema; /* NULL: not set */
    double request_time;                                        /* 0: as measured */
    HashTable tags;
    bool has_tags;
    bool is_over; /* its timers were reported: there are no more */
} pinba_request;

extern pinba_request samovar_pinba;

/* Stops timers, adds them up, and removes them from the list. */
void samovar_pinba_flush(bool only_stopped);
/* Stores an array with the data of a timer in `to`. */
void samovar_pinba_timer_info(const samovar_timer *t, zval *to);
/* Registers the resource type of timers. */
void samovar_pinba_timers_startup(int module_number);

/* Returns the request time in seconds: as set by the application, else as measured. */
double samovar_pinba_request_time(const samovar_so_far *so_far);
/* Writes the name of this machine to `to`, which has HOST_BYTES. */
enum { HOST_BYTES = 256 };
const char *samovar_pinba_this_host(char *to);
/* Encodes the data of the request as a Pinba packet. */
zend_string *samovar_pinba_packet(bool only_stopped);

#endif
