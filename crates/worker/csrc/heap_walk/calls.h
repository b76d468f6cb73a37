/* Records the lines of PHP code that called functions whose effects outlive a request. Active
 * where heap walks are enabled, and in a worker that holds more and more kernel resources
 * (holdings.c). */
#ifndef SAMOVAR_HEAP_WALK_CALLS_H
#define SAMOVAR_HEAP_WALK_CALLS_H

#include "heap_walk/walk.h"

/* Functions that return a descriptor or a mapping, as members of arrays of names. Functions that
 * open files are also listed in crates/cli/src/leaks/place.rs. */
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

/* Starts recording; further calls have no effect. Existing JIT code bypasses the records. */
void samovar_calls_watch(void);
/* Sets `all` to the records. Returns their number. */
uint32_t samovar_calls_noted(const samovar_call_note **all);
/* True during a heap walk, whose own calls are not recorded. */
extern bool samovar_calls_pause;
/* Reports the line of the last call for each function and first argument. */
void samovar_calls_tell(heap_walk_walk *w);

#endif
