/* Commands of phpredis. */
#include "insight/hooked.h"
#include <string.h>

/* Methods of Redis that send no command. */
static bool is_local(const char *name) {
    static const char *const names[] = {
        "gethost",
        "getport",
        "getdbnum",
        "gettimeout",
        "getreadtimeout",
        "getauth",
        "getmode",
        "getoption",
        "getpersistentid",
        "getlasterror",
        "setoption",
        "isconnected",
        "close",
        "clearlasterror",
        "pipeline",
        "multi",
        "gettransferredbytes",
        "cleartransferredbytes",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return name[0] == '_';
}

void samovar_hook_redis(void) {
    enum { COMMANDS_BYTES = 8192 };
    static char commands[COMMANDS_BYTES];
    size_t used = 0;
    const zend_class_entry *redis = zend_hash_str_find_ptr(CG(class_table), "redis", 5);
    zend_string *name;
    if (!redis) {
        return;
    }
    ZEND_HASH_FOREACH_STR_KEY((HashTable *)&redis->function_table, name) {
        const size_t len = ZSTR_LEN(name);
        if (is_local(ZSTR_VAL(name)) || len > UINT8_MAX || used + len > sizeof commands) {
            continue;
        }
        const bool connects = strstr(ZSTR_VAL(name), "connect") || strstr(ZSTR_VAL(name), "open");
        for (size_t i = 0; i < len; i++) {
            commands[used + i] =
                (char)(ZSTR_VAL(name)[i] -
                       ('a' <= ZSTR_VAL(name)[i] && ZSTR_VAL(name)[i] <= 'z' ? 32 : 0));
        }
        const hook command = {.describe = samovar_describe_fixed,
                              .kind = STATEMENT_REDIS,
                              .text = connects ? "(connect)" : commands + used,
                              .len = (uint8_t)(connects ? strlen("(connect)") : len)};
        used += len;
        samovar_hook_all("redis", &(hook_row){NULL, ZSTR_VAL(name), command}, 1);
    }
    ZEND_HASH_FOREACH_END();
}
