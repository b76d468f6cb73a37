/* Protocols of databases that are followed on connections of the image (connection_protocols.c):
 * far enough to know that each query has its response, and that none has changed state that the
 * server keeps for the session. */
#ifndef SAMOVAR_OUTSIDE_LANGUAGE_H
#define SAMOVAR_OUTSIDE_LANGUAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TALK_BYTES_MAX = 1 << 20, /* of a statement */
    TALK_LINE_BYTES_MAX = 64  /* of the start of a response */
};

/* A message that is not complete yet. */
typedef struct {
    uint64_t have, items;
    uint32_t left;
    bool names;
    char *bytes;
    size_t room;
} talk_reader;

typedef enum { TALK_UNKNOWN, TALK_MYSQL, TALK_PGSQL, TALK_REDIS } talk_language;

/* State of a connection of the image, since the image was taken. */
typedef struct {
    talk_language language;
    bool changed;  /* the server's session has changed, or may have */
    bool prepares; /* MySQL: the response will name a statement */
    bool in_transaction, queues;
    int64_t questions;                     /* queries without a response */
    uint64_t statements, statements_asked; /* prepared on the server, XOR of hashes; 0: none */
    talk_reader sent, received;
    char received_bytes[TALK_LINE_BYTES_MAX], sent_bytes[TALK_BYTES_MAX];
} talk_state;

/* Reads a protocol: bytes as they arrive, in pieces of any size. */
typedef void talk_read(talk_state *t, const uint8_t *at, size_t len);
typedef struct {
    talk_read *sent, *received;
} talk_reading;

/* mysql.c, pgsql.c, redis.c */
extern const talk_reading samovar_reads_mysql, samovar_reads_pgsql, samovar_reads_redis;

#endif
