/* Numbers in the wire protocols of PostgreSQL (big endian) and of MySQL (little endian). */
#ifndef SAMOVAR_OUTSIDE_WIRE_FORMAT_H
#define SAMOVAR_OUTSIDE_WIRE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

/* dev.mysql.com, Client/Server Protocol: Command Phase. */
enum {
    MYSQL_HEADER = 4, /* length (3), number; then the command */
    COM_QUERY = 3,
    COM_PING = 14,
    COM_STMT_PREPARE = 22,
    COM_STMT_EXECUTE = 23,
    COM_STMT_SEND_LONG_DATA = 24,
    COM_STMT_CLOSE = 25,
    COM_STMT_RESET = 26,
    COM_RESET_CONNECTION = 31
};

/* First byte of a response. */
enum { MYSQL_OK = 0, MYSQL_FILE = 0xfb, MYSQL_END = 0xfe, MYSQL_ERROR = 0xff };

/* Each reads 4 bytes. */
static inline uint32_t samovar_big_endian(const void *from) {
    const uint8_t *at = (const uint8_t *)from;
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline uint32_t samovar_little_endian(const void *from) {
    const uint8_t *at = (const uint8_t *)from;
    return (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

/* Length of the packet of MySQL that begins here, without its header. */
static inline size_t samovar_mysql_length(const void *packet) {
    const uint8_t *at = (const uint8_t *)packet;
    return (size_t)at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16;
}

#endif
