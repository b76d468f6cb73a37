/* Protocols of databases that are followed on connections of the image (connection_protocols.c):
 * far enough to know that each query has its response, and that none has changed state that the
 * server keeps for the session. */
#ifndef SAMOVAR_OUTSIDE_LANGUAGE_H
#define SAMOVAR_OUTSIDE_LANGUAGE_H

#include "outside/db_session.h"

enum {
    TALK_BYTES_MAX = 1 << 20, /* of a statement */
    TALK_LINE_BYTES_MAX = 64, /* of the start of a response */
    TALK_PENDING_MAX = 128,   /* PostgreSQL: messages sent without a response yet */
    TALK_LONG_DATA_MAX = 8,   /* MySQL: statements with parameters sent in advance */
    TALK_PREPARED_MAX = 64    /* MySQL: statements that one request has prepared */
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

/* PostgreSQL: a message whose effect is known when its response arrives. */
typedef struct {
    enum { PENDING_PARSE, PENDING_CLOSE, PENDING_DEALLOCATE, PENDING_SYNC } kind;
    uint64_t statement; /* hash of its name; 0: none */
} talk_pending;

/* MySQL: a statement that this request has prepared. */
typedef struct {
    uint32_t id;
    unsigned effects; /* SQL_… of its text */
} talk_prepared;

/* State of a connection of the image, since the image was taken or the session was reset. */
typedef struct {
    talk_language language;
    db_session *session; /* NULL: statements cannot be proven (Redis: have no need) */
    int fd;
    bool always_resets;    /* the session is reset after each use */
    bool changed;          /* the server's session has changed, or may have */
    bool lost;             /* the protocol can no longer be followed */
    bool inserted;         /* this request may have set the last id */
    bool has_own_messages; /* MySQL: warnings and errors are those of this request */
    /* MySQL: a request has read warnings or counts, so they are cleared after each request; they
     * were cleared before this one. */
    bool observes, began_clear;
    bool has_asked;     /* this request has executed a statement */
    bool has_selected;  /* MySQL: FOUND_ROWS() is that of this request */
    bool awaits_result; /* MySQL: the next packet is the response to a statement with `executed` */
    bool prepares;      /* MySQL: the response will name a statement */
    unsigned executed;  /* SQL_… */
    bool in_transaction, queues;
    int64_t questions;   /* queries without a response */
    uint64_t statements; /* prepared by requests, XOR of hashes; 0: none */
    talk_pending pending[TALK_PENDING_MAX];
    uint32_t pending_count;
    uint32_t long_data[TALK_LONG_DATA_MAX]; /* numbers of statements */
    uint32_t long_data_count;
    talk_prepared prepared[TALK_PREPARED_MAX];
    uint32_t prepared_count;
    talk_reader sent, received;
    char received_bytes[TALK_LINE_BYTES_MAX], sent_bytes[TALK_BYTES_MAX];
} talk_state;

/* Reads a protocol: bytes as they arrive, in pieces of any size. */
typedef void talk_read(talk_state *t, const uint8_t *at, size_t len);
typedef struct {
    talk_read *sent, *received;
} talk_reading;

/* The rules by which a statement on this connection is read now. */
static inline sql_rules samovar_talk_rules(const talk_state *t) {
    const sql_rules unknown = {.mysql = t->language == TALK_MYSQL};
    return t->session ? samovar_db_session_rules(t->session) : unknown;
}

/* Notes the effects of a statement that is being sent (sql.h). */
void samovar_talk_note(talk_state *t, unsigned effects);
/* MySQL: notes that a statement with these effects is being executed. */
void samovar_talk_note_execution(talk_state *t, unsigned effects);

/* mysql.c, pgsql.c, redis.c */
extern const talk_reading samovar_reads_mysql, samovar_reads_pgsql, samovar_reads_redis;

#endif
