/* Refusal of network traffic, for replays of requests (crates/front/src/request/replay.rs). */
#ifndef SAMOVAR_INTERPOSE_NETWORK_H
#define SAMOVAR_INTERPOSE_NETWORK_H

#include <stdbool.h>
#include <stddef.h>

/* True while the request's writes to sockets, new connections and new processes are refused. */
extern bool samovar_network_refused;

/* A request begins. */
void samovar_network_open(bool is_refused);

/* Whether a write to `fd` is refused; then errno is set. Only called while network traffic is
 * refused. Logs the first refusal of a request. */
bool samovar_refuses_write(int fd);

/* The same for a connection to an address of `len` bytes. */
bool samovar_refuses_connection(const void *address, size_t len);

/* The same for a new process. */
bool samovar_refuses_process(void);

#define REFUSES(call) (__builtin_expect(samovar_network_refused, 0) && (call))

#endif
