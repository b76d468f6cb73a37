/* The protocol on a kept connection to MySQL or MariaDB. */
#define _GNU_SOURCE
#include "outside/language.h"
#include "outside/hash.h"
#include "outside/sql.h"

/* dev.mysql.com, Client/Server Protocol: Command Phase. */
enum {
    MYSQL_HEADER = 4, /* length (3), number; then the command */
    COM_QUERY = 3,
    COM_PING = 14,
    COM_STMT_PREPARE = 22,
    COM_STMT_EXECUTE = 23,
    COM_STMT_SEND_LONG_DATA = 24,
    COM_STMT_CLOSE = 25,
    COM_STMT_RESET = 26
};

static uint64_t id_hash(const uint8_t *id) {
    return samovar_hash(id, 4);
}

/* mysqlnd sends each packet with one call. */
static void mysql_sent(talk_state *t, const uint8_t *at, size_t len) {
    if (len < MYSQL_HEADER + 1 || at[3] != 0 ||
        ((size_t)at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16) + MYSQL_HEADER != len) {
        t->changed = true;
        return;
    }
    const char *text = (const char *)at + MYSQL_HEADER + 1;
    const size_t text_len = len - MYSQL_HEADER - 1;
    t->prepares = false;
    switch (at[MYSQL_HEADER]) {
    case COM_QUERY:
        t->changed |= !samovar_sql_is_plain(text, text_len, true);
        return;
    case COM_STMT_PREPARE:
        t->changed |= !samovar_sql_is_plain(text, text_len, true);
        t->prepares = true;
        return;
    case COM_STMT_CLOSE:
        t->statements ^= text_len >= 4 ? id_hash((const uint8_t *)text) : 1;
        return;
    case COM_STMT_EXECUTE: /* Its flags may request a cursor on the server. */
        t->changed |= text_len < 5 || text[4] != 0;
        return;
    case COM_PING:
    case COM_STMT_SEND_LONG_DATA:
    case COM_STMT_RESET:
        return;
    default:
        t->changed = true;
    }
}

/* The response to COM_STMT_PREPARE begins with the statement's number. */
static void mysql_received(talk_state *t, const uint8_t *at, size_t len) {
    if (!t->prepares) {
        return;
    }
    t->prepares = false;
    if (len < MYSQL_HEADER + 5) {
        t->changed = true;
    } else if (at[MYSQL_HEADER] == 0) {
        t->statements ^= id_hash(at + MYSQL_HEADER + 1);
    }
}

const talk_reading samovar_reads_mysql = {mysql_sent, mysql_received};
