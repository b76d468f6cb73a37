/* The functions of the pinba extension, for applications that are instrumented with them. */
#ifndef SAMOVAR_FUNCTIONS_PINBA_H
#define SAMOVAR_FUNCTIONS_PINBA_H

#include "insight/timers.h"

/* In MINIT; nothing, where the extension itself is loaded. */
void samovar_pinba_startup(int module_number);
/* A request of PHP's begins and ends. */
void samovar_pinba_begin(void);
void samovar_pinba_end(void);
/* The timer is none any more, for whoever still has its resource. */
void samovar_pinba_drop(samovar_timer *t);

/* ---- between its files --------------------------------------------------------------------- */

/* What the request is called, and what it is to say of itself. */
typedef struct {
    zend_string *script_name, *hostname, *server_name, *schema; /* NULL: not said */
    double request_time;                                        /* 0: as it is */
    HashTable tags;
    bool has_tags;
    bool is_over; /* Its timers are told: there are no more. */
} pinba_request;

extern pinba_request samovar_pinba;

/* Stops timers, adds them up, and takes them out of sight. */
void samovar_pinba_flush(bool only_stopped);
/* An array of what a timer says of itself. */
void samovar_pinba_timer_info(const samovar_timer *t, zval *to);
/* The type of the timers' resources. */
void samovar_pinba_timers_startup(int module_number);

/* Seconds: as the application says, or as they are. */
double samovar_pinba_request_time(const samovar_so_far *so_far);
/* This machine's name, in HOST_BYTES of memory. */
enum { HOST_BYTES = 256 };
const char *samovar_pinba_this_host(char *to);
/* As Pinba's packet. */
zend_string *samovar_pinba_packet(bool only_stopped);

#endif
