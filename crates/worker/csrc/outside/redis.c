/* The protocol on a kept connection to Redis. */
#define _GNU_SOURCE
#include "outside/language.h"
#include <string.h>

/* Commands that change keys, and not the connection. */
static const char redis_plain[] =
    " append bitcount bitfield bitfield_ro bitop bitpos blmove blmpop blpop brpop brpoplpush "
    "bzmpop bzpopmax bzpopmin copy dbsize decr decrby del dump echo eval eval_ro evalsha "
    "evalsha_ro exists expire expireat expiretime fcall fcall_ro flushall flushdb geoadd geodist "
    "geohash geopos georadius georadius_ro georadiusbymember georadiusbymember_ro geosearch "
    "geosearchstore get getbit getdel getex getrange getset hdel hexists hget hgetall hincrby "
    "hincrbyfloat hkeys hlen hmget hmset hrandfield hscan hset hsetnx hstrlen hvals incr incrby "
    "incrbyfloat info keys lastsave lcs lindex linsert llen lmove lmpop lpop lpos lpush lpushx "
    "lrange lrem lset ltrim memory mget mset msetnx object persist pexpire pexpireat pexpiretime "
    "pfadd pfcount pfmerge ping psetex pttl publish randomkey rename renamenx restore role rpop "
    "rpoplpush rpush rpushx sadd scan scard sdiff sdiffstore set setbit setex setnx setrange "
    "sinter sintercard sinterstore sismember smembers smismember smove sort sort_ro spop spublish "
    "srandmember srem sscan strlen sunion sunionstore time touch ttl type unlink wait xack xadd "
    "xautoclaim xclaim xdel xgroup xinfo xlen xpending xrange xread xreadgroup xrevrange xtrim "
    "zadd zcard zcount zdiff zdiffstore zincrby zinter zintercard zinterstore zlexcount zmpop "
    "zmscore zpopmax zpopmin zrandmember zrange zrangebylex zrangebyscore zrangestore zrank zrem "
    "zremrangebylex zremrangebyrank zremrangebyscore zrevrange zrevrangebylex zrevrangebyscore "
    "zrevrank zscan zscore zunion zunionstore ";

static void redis_asked(talk_state *t, const char *name, size_t len) {
    char word[24] = " ";
    t->questions++;
    if (len + 3 > sizeof word) {
        t->changed = true;
        return;
    }
    for (size_t i = 0; i < len; i++) {
        word[i + 1] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] | 0x20 : name[i]);
    }
    word[len + 1] = ' ';
    word[len + 2] = 0;
    if (strcmp(word, " multi ") == 0) {
        t->changed |= t->in_transaction;
        t->in_transaction = t->queues = true;
    } else if (strcmp(word, " exec ") == 0 || strcmp(word, " discard ") == 0) {
        t->changed |= !t->in_transaction;
        t->in_transaction = false;
    } else if (!strstr(redis_plain, word)) {
        t->changed = true;
    }
}

/* Reads a line of the "Redis serialization protocol". Returns true when it is complete. */
static bool redis_line(talk_reader *r, char c) {
    if (r->have + 1 < r->room) {
        r->bytes[r->have++] = c;
    }
    if (c != '\n') {
        return false;
    }
    r->bytes[r->have] = 0;
    r->have = 0;
    return true;
}

static int64_t number_in(const char *line) {
    bool negative = line[1] == '-';
    int64_t n = 0;
    for (const char *at = line + 1 + negative; *at >= '0' && *at <= '9' && n < INT32_MAX; at++) {
        n = n * 10 + (*at - '0');
    }
    return negative ? -n : n;
}

static void redis_sent(talk_state *t, const uint8_t *at, size_t len) {
    talk_reader *r = &t->sent;
    for (; len > 0; at++, len--) {
        if (r->left > 0) { /* An argument and the end of its line. */
            if (r->names && r->have < r->room) {
                r->bytes[r->have++] = (char)*at;
            }
            if (--r->left == 0) {
                r->items--;
                if (r->names) {
                    redis_asked(t, r->bytes, r->have - 2);
                }
                r->names = false;
                r->have = 0;
            }
        } else if (redis_line(r, (char)*at)) {
            if (r->items == 0 && r->bytes[0] == '*') {
                r->items = (uint64_t)number_in(r->bytes);
                r->names = r->items > 0;
            } else if (r->items > 0 && r->bytes[0] == '$') {
                r->left = (uint32_t)number_in(r->bytes) + 2;
            } else {
                t->changed = true; /* Not the form that libraries write. */
            }
        }
    }
}

static void redis_reply(talk_state *t, talk_reader *r, const char *line) {
    if (r->items == 0) {
        r->items = 1;
        t->changed |= strncmp(line, "+QUEUED", 7) == 0 && !t->queues;
    }
    r->items--;
    if (line[0] == '*') {
        const int64_t parts = number_in(line);
        r->items += parts > 0 ? (uint64_t)parts : 0;
    } else if (line[0] == '$') {
        const int64_t bytes = number_in(line);
        r->left = bytes >= 0 ? (uint32_t)bytes + 2 : 0;
    } else if (line[0] != '+' && line[0] != '-' && line[0] != ':') {
        t->changed = true; /* A later version of the protocol, which a client has to request. */
    }
}

static void redis_received(talk_state *t, const uint8_t *at, size_t len) {
    talk_reader *r = &t->received;
    while (len > 0) {
        if (r->left > 0) {
            const size_t part = len < r->left ? len : r->left;
            at += part;
            len -= part;
            r->left -= (uint32_t)part;
        } else {
            len--;
            if (redis_line(r, (char)*at++)) {
                redis_reply(t, r, r->bytes);
            } else {
                continue;
            }
        }
        if (r->left == 0 && r->items == 0) {
            t->questions--;
            t->queues = t->questions > 0 || t->in_transaction;
        }
    }
}

const talk_reading samovar_reads_redis = {redis_sent, redis_received};
