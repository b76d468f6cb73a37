/* The record of a connection is bounded. A boot that sends more has an incomplete one, and the
 * connection can then be neither proven unchanged when it executes statements of the boot, nor
 * reset. */
#include "outside/boot_traffic.h"
#include "outside/wire_format.h"
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { CONNECTIONS_MAX = 64 };

static boot_traffic connections[CONNECTIONS_MAX];
static uint32_t count;

static void forget(uint32_t i) {
    free(connections[i].sent);
    connections[i] = connections[--count];
}

void samovar_boot_traffic_begin(void) {
    samovar_boot_traffic_retain(NULL);
}

void samovar_boot_traffic_retain(bool (*is_wanted)(int fd)) {
    for (uint32_t i = count; i-- > 0;) {
        if (!is_wanted || !is_wanted(connections[i].fd)) {
            forget(i);
        }
    }
}

static boot_traffic *find(int fd) {
    for (uint32_t i = 0; i < count; i++) {
        if (connections[i].fd == fd) {
            return &connections[i];
        }
    }
    return NULL;
}

void samovar_boot_traffic_opened(int fd) {
    const boot_traffic *old = find(fd);
    if (old) {
        forget((uint32_t)(old - connections));
    }
}

static bool is_stream_socket(int fd) {
    int type = 0;
    socklen_t len = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM;
}

static boot_traffic *find_or_add(int fd) {
    boot_traffic *c = find(fd);
    if (c || count == CONNECTIONS_MAX || !is_stream_socket(fd)) {
        return c;
    }
    c = &connections[count];
    *c = (boot_traffic){.fd = fd, .is_complete = true, .sent = malloc(BOOT_SENT_BYTES_MAX)};
    if (!c->sent) {
        return NULL;
    }
    count++;
    return c;
}

/* A packet of MySQL: length (3), number, command. mysqlnd sends each with one call. */
static bool is_mysql_prepare(const uint8_t *at, size_t len) {
    return len > 5 && at[3] == 0 && at[4] == COM_STMT_PREPARE &&
           samovar_mysql_length(at) + MYSQL_HEADER == len;
}

void samovar_boot_traffic_sent(int fd, const void *bytes, size_t len) {
    boot_traffic *c = len > 0 ? find_or_add(fd) : NULL;
    if (!c) {
        return;
    }
    if (len > BOOT_SENT_BYTES_MAX - c->len) {
        c->is_complete = false;
        return;
    }
    memcpy(c->sent + c->len, bytes, len);
    c->len += len;
    c->prepares = is_mysql_prepare(bytes, len);
    if (c->prepares && c->prepared_count == BOOT_PREPARED_MAX) {
        c->is_complete = c->prepares = false;
    }
}

/* The response to COM_STMT_PREPARE: header (4), 0, number of the statement (4), of its columns
 * (2), of its parameters (2). */
void samovar_boot_traffic_received(int fd, const void *bytes, size_t len) {
    boot_traffic *c = find(fd);
    const uint8_t *at = bytes;
    if (!c || !c->prepares) {
        return;
    }
    c->prepares = false;
    const bool is_whole = len >= 13 || (len > 4 && at[4] != 0);
    c->is_complete &= is_whole;
    uint32_t id = 0;
    uint16_t parameters = 0;
    if (len >= 13 && at[4] == 0) {
        memcpy(&id, at + 5, sizeof id);
        memcpy(&parameters, at + 11, sizeof parameters);
    }
    c->prepared[c->prepared_count].id = id;
    c->prepared[c->prepared_count++].parameters = parameters;
}

const boot_traffic *samovar_boot_traffic_of(int fd) {
    return find(fd);
}
