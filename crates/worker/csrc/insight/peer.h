/* Names the peer of a descriptor or an address for reports. */
#ifndef SAMOVAR_INSIGHT_PEER_H
#define SAMOVAR_INSIGHT_PEER_H

#include "insight/request_accounting.h"

wait_kind samovar_peer_of(int fd, short_name *peer);
/* The same for an address that the socket `fd` connects to. */
wait_kind samovar_peer_at(int fd, const void *address, size_t len, short_name *peer);
/* Stores the class of the file: its path, as the kernel has it, without ids. */
void samovar_file_of(int fd, short_name *peer);
/* Defined in Rust (src/file_class.rs). Returns the length of the class in `to`. */
size_t samovar_file_class(const uint8_t *path, size_t len, uint8_t *to, size_t room);

/* Returns the first descriptor of a poll() that has found `ready` of them, or the only one that
 * it waited for. -1: there were several, and none was ready. */
int samovar_polled(const blocking_call *call, long ready);
/* Returns the first descriptor in the sets of a select(). After the call, the sets hold those
 * that were ready. */
int samovar_selected(const blocking_call *call);
/* Returns the only descriptor in the sets, or -1. Used before the call, because the call empties
 * the sets. */
int samovar_selected_alone(const blocking_call *call);

#endif
