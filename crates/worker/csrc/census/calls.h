/* Which line of PHP called the functions that change what outlives a request: noted where censuses
 * are asked for, and in a worker that holds more and more of the kernel (holdings.c). */
#ifndef SAMOVAR_CENSUS_CALLS_H
#define SAMOVAR_CENSUS_CALLS_H

#include "census/walk.h"

/* Functions that give a descriptor or a mapping; members of arrays of names. Those of files are in
 * crates/cli/src/leaks/place.rs, too. */
#define SAMOVAR_OPENERS                                                                            \
    "fopen", "tmpfile", "opendir", "popen", "proc_open", "fsockopen", "pfsockopen",                \
        "stream_socket_client", "stream_socket_server", "stream_socket_pair", "socket_create",     \
        "curl_init"
#define SAMOVAR_MAPPERS "shmop_open", "shm_attach", "dba_open"

enum { CALL_ARGUMENT = 80, CALL_FILE = 256 };

/* The last call of a function with that first argument. */
typedef struct {
    const char *name;
    char argument[CALL_ARGUMENT];
    char file[CALL_FILE];
    uint32_t line;
} samovar_call_note;

/* From here on; once is enough. The JIT's code that is there already calls past it. */
void samovar_calls_watch(void);
/* All notes; returns their number. */
uint32_t samovar_calls_noted(const samovar_call_note **all);
/* What a census itself asks is not noted. */
extern bool samovar_calls_pause;
/* The last line of each call with another first argument. */
void samovar_calls_tell(census_walk *w);

#endif
