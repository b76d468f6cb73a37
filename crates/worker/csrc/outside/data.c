/* Data that the boot has received from others over connections. It is in the image, and every
 * request finds it as it was then. It is reported with the findings of preflight.c.
 *
 * A query is data that was sent, and a response is data after it. Messages that only open or set
 * up a connection bring no data to the application. For two protocols they are recognized by
 * their form. */
#define _GNU_SOURCE
#include "outside/data.h"
#include "boundary.h"
#include "outside/descriptor.h"
#include <php.h>
#include <sys/socket.h>

enum {
    TALKS_MAX = 64, /* connections followed at the same time */
    PEERS_MAX = 16, /* reported */
    WHERE = 256,
    PLAIN_RESPONSE_BYTES = 32 /* "done" in MySQL and PostgreSQL */
};

/* The protocol is detected by the side that sends first, and by its message. */
typedef enum { FRESH = 0, MYSQL, POSTGRESQL, OTHER } protocol;

static struct {
    int fd;
    uint32_t peer; /* PEERS_MAX: not a stream, or too many peers */
    protocol protocol;
    bool is_question; /* the last data that was sent is a query */
    bool is_trivial;  /* its response is one word */
    size_t responded; /* bytes of the response */
} talks[TALKS_MAX];
static uint32_t talk_count;

static struct {
    char name[DESCRIPTOR_TEXT], line[WHERE];
    uint64_t questions, bytes;
} peers[PEERS_MAX];
static uint32_t peer_count;

void samovar_data_begin(void) {
    talk_count = peer_count = 0;
}

static uint32_t peer_of(int fd) {
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    int type = 0;
    socklen_t type_len = sizeof type;
    memset(&address, 0, sizeof address);
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) != 0 || type != SOCK_STREAM ||
        getpeername(fd, (struct sockaddr *)&address, &len) != 0) {
        return PEERS_MAX;
    }
    char name[DESCRIPTOR_TEXT];
    samovar_descriptor_peer_name(&address, name);
    uint32_t i = 0;
    while (i < peer_count && strcmp(peers[i].name, name) != 0) {
        i++;
    }
    if (i == peer_count && i < PEERS_MAX) {
        memset(&peers[i], 0, sizeof peers[i]);
        memcpy(peers[i].name, name, sizeof name);
        peer_count++;
    }
    return i;
}

static uint32_t talk_on(int fd) {
    uint32_t i = 0;
    while (i < talk_count && talks[i].fd != fd) {
        i++;
    }
    if (i == talk_count && i < TALKS_MAX) {
        memset(&talks[i], 0, sizeof talks[i]);
        talks[i].fd = fd;
        talks[i].peer = peer_of(fd);
        talk_count++;
    }
    return i;
}

/* Counts the last query when its response is known to be complete. */
static void settle(uint32_t i) {
    const bool is_plain = talks[i].protocol == OTHER ? talks[i].is_trivial
                                                     : talks[i].responded < PLAIN_RESPONSE_BYTES;
    if (talks[i].peer < PEERS_MAX && talks[i].is_question && talks[i].responded > 0 && !is_plain) {
        peers[talks[i].peer].questions++;
        peers[talks[i].peer].bytes += talks[i].responded;
    }
    talks[i].is_question = talks[i].is_trivial = false;
    talks[i].responded = 0;
}

void samovar_data_opened(int fd) {
    for (uint32_t i = 0; i < talk_count; i++) {
        if (talks[i].fd == fd) {
            settle(i);
            talks[i] = talks[--talk_count];
            return;
        }
    }
}

/* A PostgreSQL client begins with a length and a version, or with a request for TLS. */
static bool begins_postgresql(const uint8_t *bytes, size_t len) {
    static const uint8_t version[] = {0, 3, 0, 0}, tls[] = {4, 210, 22, 47};
    return len >= 8 && (memcmp(bytes + 4, version, 4) == 0 || memcmp(bytes + 4, tls, 4) == 0);
}

static bool asks(protocol spoken, const uint8_t *bytes, size_t len) {
    switch (spoken) {
    case MYSQL: /* Packets have numbers; those of the login continue from the server's first. */
        return len > 4 && bytes[3] == 0;
    case POSTGRESQL: /* Queries, parsed ones, calls, copies. The login begins with a length: 0. */
        return len > 4 && bytes[0] != 0 && strchr("QPBEFd", bytes[0]) != NULL;
    default:
        return true;
    }
}

void samovar_data_asked(int fd, const void *bytes, size_t len) {
    const uint32_t i = len > 0 && bytes ? talk_on(fd) : TALKS_MAX;
    if (i == TALKS_MAX || talks[i].peer == PEERS_MAX) {
        return;
    }
    if (talks[i].responded > 0) {
        settle(i);
    }
    if (talks[i].protocol == FRESH) {
        talks[i].protocol = begins_postgresql(bytes, len) ? POSTGRESQL : OTHER;
    }
    if (asks(talks[i].protocol, bytes, len)) {
        talks[i].is_question = true;
        char *line = peers[talks[i].peer].line;
        if (!*line && EG(current_execute_data)) {
            snprintf(line, WHERE, "%s:%u", zend_get_executed_filename(),
                     zend_get_executed_lineno());
        }
    }
}

void samovar_data_responded(int fd, const void *bytes, ssize_t len) {
    const uint32_t i = talk_on(fd);
    if (i == TALKS_MAX || talks[i].peer == PEERS_MAX) {
        return;
    }
    if (talks[i].protocol == FRESH) {
        talks[i].protocol = MYSQL; /* The server speaks first. */
    }
    if (talks[i].responded == 0) {
        talks[i].is_trivial = bytes && len >= 3 && memcmp(bytes, "+OK", 3) == 0;
    }
    talks[i].responded += (size_t)len;
}

void samovar_data_report(void) {
    for (uint32_t i = 0; i < talk_count; i++) {
        settle(i);
    }
    talk_count = 0;
    for (uint32_t i = 0; i < peer_count; i++) {
        if (peers[i].questions == 0) {
            continue;
        }
        char what[DESCRIPTOR_TEXT + 96];
        snprintf(what, sizeof what, "the responses to %llu requests (%llu bytes) from %s",
                 (unsigned long long)peers[i].questions, (unsigned long long)peers[i].bytes,
                 peers[i].name);
        samovar_finding("data", "note", what, peers[i].line,
                        "this data is frozen until the next reload: request it after the "
                        "checkpoint, or again in checkpoint_resume");
    }
}
