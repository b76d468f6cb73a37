/* Bytes that the boot has sent on each of its connections, from the first one. db_session_pgsql.c
 * and db_session_mysql.c read them when the worker begins. */
#ifndef SAMOVAR_OUTSIDE_BOOT_TRAFFIC_H
#define SAMOVAR_OUTSIDE_BOOT_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BOOT_SENT_BYTES_MAX = 64 << 10, /* recorded for a connection */
    BOOT_PREPARED_MAX = 64          /* MySQL: responses to COM_STMT_PREPARE */
};

typedef struct {
    int fd;
    bool is_complete; /* everything fits */
    bool prepares;    /* MySQL: the next response belongs to a COM_STMT_PREPARE */
    size_t len;
    char *sent;
    /* MySQL: for each COM_STMT_PREPARE in order, the number of the statement (0: refused) and of
     * its parameters. */
    struct {
        uint32_t id;
        uint16_t parameters;
    } prepared[BOOT_PREPARED_MAX];
    uint32_t prepared_count;
} boot_traffic;

/* Called while booting. opened: `fd` is now another descriptor than before. */
void samovar_boot_traffic_begin(void);
void samovar_boot_traffic_opened(int fd);
void samovar_boot_traffic_sent(int fd, const void *bytes, size_t len);
void samovar_boot_traffic_received(int fd, const void *bytes, size_t len);
/* Drops the records of all other connections. NULL: of all. */
void samovar_boot_traffic_retain(bool (*is_wanted)(int fd));
/* Returns NULL if nothing is known of it. */
const boot_traffic *samovar_boot_traffic_of(int fd);

#endif
