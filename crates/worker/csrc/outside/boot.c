/* Records of a boot: the descriptors of the application, the use of its sockets, and the line of
 * PHP that opened each. They are part of the image, so every worker has them. */
#define _GNU_SOURCE
#include "outside/boot.h"
#include "outside/boot_traffic.h"
#include "outside/data.h"
#include "outside/descriptor.h"
#include <php.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WHERE = 256, PLACES_MAX = 128, MAPPINGS_MAX = 16 };

bool samovar_booting;

static descriptor_set before;
/* Encrypted sockets, known by their first bytes: TLS's ClientHello, SSH's greeting, from any
 * library. And sockets that were bound to an address, or given options. */
static descriptor_set ciphers, bound, tuned;

/* The line of PHP that opened each descriptor. */
static struct {
    int fd;
    char line[WHERE];
} places[PLACES_MAX];
static uint32_t place_count;

static const void *mappings[MAPPINGS_MAX];
static uint32_t mapping_count;

static void note_before(int fd, void *data) {
    (void)data;
    samovar_set_add(&before, fd);
}

void samovar_boot_begin(void) {
    before = ciphers = bound = tuned = (descriptor_set){{0}};
    samovar_for_each_descriptor(note_before, NULL);
    place_count = mapping_count = 0;
    samovar_data_begin();
    samovar_boot_traffic_begin();
    samovar_booting = true;
}

void samovar_boot_end(void) {
    samovar_booting = false;
}

/* ---- records ------------------------------------------------------------------------------- */

void samovar_boot_sent(int fd, const void *from, size_t len) {
    const uint8_t *at = from;
    if (!samovar_booting) {
        return;
    }
    samovar_boot_traffic_sent(fd, from, len);
    const bool tls = len > 5 && at[0] == 0x16 && at[1] == 3 && at[2] <= 4 && at[5] == 1;
    if (tls || (len >= 4 && memcmp(at, "SSH-", 4) == 0)) {
        samovar_set_add(&ciphers, fd);
    }
}

void samovar_boot_bound(int fd) {
    if (samovar_booting) {
        samovar_set_add(&bound, fd);
    }
}

/* A socket has no peer until the other end has responded. */
void samovar_boot_connects(int fd) {
    if (samovar_booting && !samovar_is_datagram(fd)) {
        samovar_boot_bound(fd);
    }
}

void samovar_boot_tuned(int fd) {
    if (samovar_booting) {
        samovar_set_add(&tuned, fd);
    }
}

/* Called when the number belongs to another socket. */
static void forget(int fd) {
    samovar_set_remove(&ciphers, fd);
    samovar_set_remove(&bound, fd);
    samovar_set_remove(&tuned, fd);
}

static uint32_t place_of(int fd) {
    uint32_t i = 0;
    while (i < place_count && places[i].fd != fd) {
        i++;
    }
    return i;
}

void samovar_boot_opened(int fd) {
    if (!samovar_booting) {
        return;
    }
    forget(fd);
    samovar_boot_traffic_opened(fd);
    if (fd == -1 || !EG(current_execute_data)) {
        return;
    }
    samovar_data_opened(fd);
    const uint32_t i = place_of(fd);
    if (i == PLACES_MAX) {
        return;
    }
    place_count = MAX(place_count, i + 1);
    places[i].fd = fd;
    snprintf(places[i].line, WHERE, "%s:%u", zend_get_executed_filename(),
             zend_get_executed_lineno());
}

void samovar_boot_forks(void) {
    samovar_boot_opened(BOOT_CHILD);
}

/* The data of a file with a name is not part of the process. */
void samovar_boot_mapped(const void *at, int fd) {
    struct stat info;
    const bool has_name = fd >= 0 && fstat(fd, &info) == 0 && info.st_nlink > 0;
    if (samovar_booting && !has_name && mapping_count < MAPPINGS_MAX) {
        mappings[mapping_count++] = at;
        samovar_boot_opened(BOOT_MAPPING);
    }
}

/* ---- queries ------------------------------------------------------------------------------- */

bool samovar_boot_was_there(int fd) {
    return samovar_set_has(&before, fd);
}

void samovar_boot_disown(int fd) {
    samovar_set_add(&before, fd);
}

bool samovar_boot_has_cipher(int fd) {
    return samovar_set_has(&ciphers, fd);
}

bool samovar_boot_is_bound(int fd) {
    return samovar_set_has(&bound, fd);
}

bool samovar_boot_is_tuned(int fd) {
    return samovar_set_has(&tuned, fd);
}

bool samovar_boot_shares_memory(void) {
    unsigned char resident;
    for (uint32_t i = 0; i < mapping_count; i++) {
        if (syscall(SYS_mincore, mappings[i], 1, &resident) == 0) {
            return true;
        }
    }
    return false;
}

const char *samovar_boot_where(int fd) {
    const uint32_t i = place_of(fd);
    return i < place_count ? places[i].line : "";
}
