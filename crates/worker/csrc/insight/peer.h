/* Who is behind a descriptor or an address, as reports name it. */
#ifndef SAMOVAR_INSIGHT_PEER_H
#define SAMOVAR_INSIGHT_PEER_H

#include "insight/ledger.h"

wait_kind samovar_peer_of(int fd, short_name *peer);
/* Of an address that the socket `fd` connects to. */
wait_kind samovar_peer_at(int fd, const void *address, size_t len, short_name *peer);
/* The file's path, as the kernel has it. */
void samovar_path_of(int fd, short_name *path);

/* Of a poll() that has found `ready` descriptors: the first of them, or the only one that it waited
 * for; -1: several, and none was ready. */
int samovar_polled(const blocking_call *call, long ready);
/* The first descriptor in the sets of a select(): after the call, of those that were ready. */
int samovar_selected(const blocking_call *call);
/* Before the call, because it empties the sets: the only one, or -1. */
int samovar_selected_alone(const blocking_call *call);

#endif
