/* The wire protocols of PostgreSQL and MySQL, as far as one query at a time needs them. The
 * connection is idle, unencrypted and uncompressed (connections.c), so the driver has no unread
 * data.
 *
 * System calls are made directly: connection_protocols.c must not see these bytes. Deadlines
 * bound each wait, because a server may hang. */
#define _GNU_SOURCE
#include "outside/db_query.h"
#include "boundary.h"
#include "outside/wire_format.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Shared memory: a query at the end of a request must not touch pages of the image. */
typedef struct {
    size_t from, to; /* bytes received and not read yet */
    int fd;
    int64_t deadline_ms;
    char received[QUERY_BYTES_MAX], message[QUERY_BYTES_MAX + 16];
} query_buffer;

static query_buffer *b;

bool samovar_db_query_begin(void) {
    b = b ? b : samovar_shared_memory(sizeof *b);
    return b != NULL;
}

/* ---- bytes --------------------------------------------------------------------------------- */

int64_t samovar_db_now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool wait_for(short events) {
    struct pollfd p = {.fd = b->fd, .events = events};
    for (;;) {
        const int64_t left = b->deadline_ms - samovar_db_now_ms();
        if (left <= 0) {
            return false;
        }
        const struct timespec limit = {left / 1000, (left % 1000) * 1000000};
        const long n = syscall(SYS_ppoll, &p, 1, &limit, NULL, 0);
        if (n > 0) {
            return true;
        }
        if (n == 0 || errno != EINTR) {
            return false;
        }
    }
}

static bool is_temporary_error(void) {
    return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;
}

static bool send_all(const void *from, size_t len) {
    const char *at = from;
    while (len > 0) {
        const long n = syscall(SYS_sendto, b->fd, at, len, MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        } else if (!is_temporary_error() || !wait_for(POLLOUT)) {
            return false;
        }
    }
    return true;
}

static bool receive_more(void) {
    for (;;) {
        const long n =
            syscall(SYS_recvfrom, b->fd, b->received, sizeof b->received, MSG_DONTWAIT, NULL, NULL);
        if (n > 0) {
            b->from = 0;
            b->to = (size_t)n;
            return true;
        }
        if (n == 0 || !is_temporary_error() || !wait_for(POLLIN)) {
            return false;
        }
    }
}

/* `to`: NULL to skip the bytes. */
static bool receive(void *to, size_t len) {
    while (len > 0) {
        if (b->from == b->to && !receive_more()) {
            return false;
        }
        const size_t have = b->to - b->from, part = have < len ? have : len;
        if (to) {
            memcpy(to, b->received + b->from, part);
            to = (char *)to + part;
        }
        b->from += part;
        len -= part;
    }
    return true;
}

static void begin(int fd) {
    b->fd = fd;
    b->from = b->to = 0;
    b->deadline_ms = samovar_db_now_ms() + QUERY_WAIT_MS;
}

/* The driver would read the rest of this response as its own. It must see a closed connection
 * instead. */
static bool give_up(void) {
    syscall(SYS_shutdown, b->fd, SHUT_RDWR);
    return false;
}

/* Unread data would be a response that belongs to nothing. */
static bool is_read(void) {
    return b->from == b->to || give_up();
}

/* ---- PostgreSQL ---------------------------------------------------------------------------- */

/* Reads a DataRow: a count (2), and for each value its length (4; -1: NULL) and its bytes. */
static bool read_pgsql_row(size_t len, query_row *row, void *data) {
    query_value values[QUERY_COLUMNS_MAX];
    const char *at = b->message, *const end = at + len;
    if (len < 2) {
        return false;
    }
    const unsigned count = (unsigned)((uint8_t)at[0] << 8 | (uint8_t)at[1]);
    at += 2;
    if (count > QUERY_COLUMNS_MAX) {
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        if (end - at < 4) {
            return false;
        }
        const uint32_t bytes = samovar_big_endian(at);
        at += 4;
        if (bytes == UINT32_MAX) {
            values[i] = (query_value){NULL, 0};
            continue;
        }
        if ((size_t)(end - at) < bytes) {
            return false;
        }
        values[i] = (query_value){at, bytes};
        at += bytes;
    }
    return row(data, values, count);
}

bool samovar_db_query_pgsql_raw(int fd, const void *messages, size_t len, unsigned ends,
                                query_row *row, void *data) {
    begin(fd);
    bool is_good = true;
    if (!send_all(messages, len)) {
        return give_up();
    }
    while (ends > 0) {
        char header[5];
        if (!receive(header, sizeof header)) {
            return give_up();
        }
        const uint32_t size = samovar_big_endian(header + 1);
        const size_t body = size - 4;
        const bool is_row = header[0] == 'D' && row;
        if (size < 4 || (is_row && body > sizeof b->message) ||
            !receive(body <= sizeof b->message ? b->message : NULL, body)) {
            return give_up();
        }
        is_good &= header[0] != 'E' && (!is_row || read_pgsql_row(body, row, data));
        if (header[0] == 'Z') {
            is_good &= body == 1 && b->message[0] != 'E'; /* a failed transaction */
            ends--;
        }
    }
    return is_good && is_read();
}

bool samovar_db_query_pgsql(int fd, const char *sql, query_row *row, void *data) {
    const size_t len = strlen(sql) + 1;
    if (len > QUERY_BYTES_MAX) {
        return false;
    }
    const uint32_t size = (uint32_t)len + 4;
    const char header[] = {'Q', (char)(size >> 24), (char)(size >> 16), (char)(size >> 8),
                           (char)size};
    memcpy(b->message, header, sizeof header);
    memcpy(b->message + sizeof header, sql, len);
    return samovar_db_query_pgsql_raw(fd, b->message, len + sizeof header, 1, row, data);
}

/* ---- MySQL --------------------------------------------------------------------------------- */

/* Reads a packet. Returns its length, SIZE_MAX if it could not be read. */
static size_t receive_packet(void) {
    uint8_t header[MYSQL_HEADER];
    if (!receive(header, sizeof header)) {
        return SIZE_MAX;
    }
    const size_t len = samovar_mysql_length(header);
    if (len == 0 || len > QUERY_BYTES_MAX || !receive(b->message, len)) {
        return SIZE_MAX;
    }
    return len;
}

static uint8_t first_byte(void) {
    return (uint8_t)b->message[0];
}

/* Reads an integer of variable length. Returns SIZE_MAX if it is none. */
static size_t read_length(const char **at, const char *end) {
    const uint8_t *from = (const uint8_t *)*at;
    const size_t left = (size_t)(end - *at);
    const size_t bytes = left == 0         ? 0
                         : from[0] < 0xfb  ? 1
                         : from[0] == 0xfc ? 3
                         : from[0] == 0xfd ? 4
                                           : 0;
    if (bytes == 0 || bytes > left) {
        return SIZE_MAX;
    }
    *at += bytes;
    if (bytes == 1) {
        return from[0];
    }
    return (size_t)from[1] | (size_t)from[2] << 8 | (bytes == 4 ? (size_t)from[3] << 16 : 0);
}

static bool read_mysql_row(size_t len, size_t columns, query_row *row, void *data) {
    query_value values[QUERY_COLUMNS_MAX];
    const char *at = b->message, *const end = at + len;
    for (size_t i = 0; i < columns; i++) {
        if (at < end && (uint8_t)*at == MYSQL_FILE) { /* In a row it means NULL. */
            values[i] = (query_value){NULL, 0};
            at++;
            continue;
        }
        const size_t bytes = read_length(&at, end);
        if (bytes == SIZE_MAX || (size_t)(end - at) < bytes) {
            return false;
        }
        values[i] = (query_value){at, bytes};
        at += bytes;
    }
    return row(data, values, (unsigned)columns);
}

static bool is_end_packet(size_t len) {
    return first_byte() == MYSQL_END && len < 9;
}

/* Definitions of columns, an end packet, rows, an end packet. */
static bool read_mysql_result(size_t columns, query_row *row, void *data) {
    for (size_t i = 0; i < columns; i++) {
        if (receive_packet() == SIZE_MAX) {
            return give_up();
        }
    }
    const size_t end = receive_packet();
    if (end == SIZE_MAX || !is_end_packet(end)) {
        return give_up();
    }
    bool is_good = true;
    for (;;) {
        const size_t len = receive_packet();
        if (len == SIZE_MAX) {
            return give_up();
        }
        if (first_byte() == MYSQL_ERROR) {
            return false;
        }
        if (is_end_packet(len)) {
            return is_good;
        }
        is_good &= !row || read_mysql_row(len, columns, row, data);
    }
}

bool samovar_db_query_mysql_raw(int fd, uint8_t command, const void *text, size_t len,
                                query_row *row, void *data) {
    if (len + 1 > QUERY_BYTES_MAX) {
        return false;
    }
    const size_t size = len + 1;
    const char header[] = {(char)size, (char)(size >> 8), (char)(size >> 16), 0, (char)command};
    begin(fd);
    memcpy(b->message, header, sizeof header);
    memcpy(b->message + sizeof header, text, len);
    if (!send_all(b->message, len + sizeof header)) {
        return give_up();
    }
    const size_t first = receive_packet();
    if (first == SIZE_MAX || first_byte() == MYSQL_FILE) {
        return give_up();
    }
    if (first_byte() == MYSQL_ERROR) {
        return false;
    }
    if (first_byte() == MYSQL_OK) {
        return is_read();
    }
    const size_t columns = first_byte();
    if (columns > QUERY_COLUMNS_MAX) {
        return give_up();
    }
    return read_mysql_result(columns, row, data) && is_read();
}

bool samovar_db_query_mysql(int fd, const char *sql, query_row *row, void *data) {
    return samovar_db_query_mysql_raw(fd, COM_QUERY, sql, strlen(sql), row, data);
}
