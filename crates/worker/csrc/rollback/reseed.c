/* Random generators: none may continue from its state in the image, or all requests would draw
 * the same numbers.
 *
 * Generators that query the kernel each time need nothing. OpenSSL gets a method that queries
 * the kernel, and libgcrypt is configured to do the same. The others get a new seed after every
 * rollback and fork:
 * - PHP's Mersenne Twister (also used by rand, shuffle, str_shuffle, array_rand);
 * - PHP's combined LCG (lcg_value, uniqid with more entropy);
 * - the session's own generator;
 * - engine objects made above the checkpoint without a seed of their own;
 * - GMP, and libc's rand, random and drand48;
 * - SQLite's randomblob and random(), MongoDB's ObjectId, GnuTLS, libgcrypt.
 *
 * Generators that seed themselves at their first use are made to forget their state once, before
 * requests begin: a rollback makes them forget it again. The others are reseeded after each
 * rollback. */
#define _GNU_SOURCE
#include "rollback/reseed.h"
#include "compat.h"
#include "leave.h"
#include "memory/persistent.h"
#include <dlfcn.h>
#include <ext/standard/basic_functions.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/random.h>

/* ---- OpenSSL ------------------------------------------------------------------------------- */

/* openssl/rand.h: struct rand_meth_st. OpenSSL 3 keeps it as an interface for engines. */
typedef struct {
    int (*seed)(const void *, int);
    int (*bytes)(unsigned char *, int);
    void (*cleanup)(void);
    int (*add)(const void *, int, double);
    int (*pseudorand)(unsigned char *, int);
    int (*status)(void);
} rand_method;

static bool fill_from_kernel(void *to, size_t len) {
    unsigned char *at = to;
    while (len > 0) {
        ssize_t n = getrandom(at, len, 0);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        }
    }
    return true;
}

static int kernel_bytes(unsigned char *to, int len) {
    return len >= 0 && fill_from_kernel(to, (size_t)len);
}

static int kernel_seed(const void *from, int len) {
    (void)from;
    (void)len;
    return 1;
}

static int kernel_add(const void *from, int len, double entropy) {
    (void)entropy;
    return kernel_seed(from, len);
}

static int kernel_status(void) {
    return 1;
}

static const rand_method from_kernel = {kernel_seed, kernel_bytes, NULL,
                                        kernel_add,  kernel_bytes, kernel_status};

/* Only for libraries that are already loaded: a library that is loaded later seeds itself. */
static void *loaded(const char *library, const char *function) {
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    return handle ? dlsym(handle, function) : NULL;
}

/* gcrypt.h. */
enum { GCRYCTL_SET_PREFERRED_RNG_TYPE = 65, GCRY_RNG_TYPE_SYSTEM = 3 };

/* Both before any number was drawn from them. libgcrypt, too, can query the kernel each time. */
void samovar_reseed_startup(void) {
    int (*set_method)(const rand_method *) = dlsym(RTLD_DEFAULT, "RAND_set_rand_method");
    if (set_method) {
        set_method(&from_kernel);
    }
    int (*control)(int, ...) = (int (*)(int, ...))loaded("libgcrypt.so.20", "gcry_control");
    if (control) {
        control(GCRYCTL_SET_PREFERRED_RNG_TYPE, GCRY_RNG_TYPE_SYSTEM);
    }
}

void gcry_create_nonce(void *to, size_t len);

/* Replaces libgcrypt's function in all models, because that function counts up from a number
 * that a process draws once. */
void gcry_create_nonce(void *to, size_t len) {
    if (!fill_from_kernel(to, len)) {
        abort(); /* As in libgcrypt: callers do not check for failure. */
    }
}

/* ---- PHP's own ----------------------------------------------------------------------------- */

/* Entropy costs a system call. So it is drawn for many rollbacks at once, into memory that no
 * rollback restores. */
static void draw(void *to, size_t len) {
    if (!samovar_persistent) {
        fill_from_kernel(to, len);
        return;
    }
    reseed_state *s = samovar_reseed_state();
    if (s->entropy_left < len) {
        if (!fill_from_kernel(s->entropy, sizeof s->entropy)) {
            samovar_leave_for(LEAVE_FATAL);
        }
        s->entropy_left = sizeof s->entropy;
    }
    s->entropy_left -= len;
    memcpy(to, s->entropy + s->entropy_left, len);
    memset(s->entropy + s->entropy_left, 0, len);
}

static uint64_t draw_number(void) {
    uint64_t number;
    draw(&number, sizeof number);
    return number;
}

static void reseed_php(void) {
    RANDOM_G(mt19937_seeded) = false; /* Seeds itself from the kernel at its next use. */
    uint64_t number = draw_number();
    samovar_lcg_set((int32_t)(number & 0x3fffffff) + 1, (int32_t)(number >> 32 & 0x3fffffff) + 1);
    if (SAMOVAR_SESSION_OWN_RANDOM && &ps_globals) {
        uint64_t high = draw_number();
        samovar_session_random_seed(high, draw_number());
    }
}

/* Replaces libphp's function in all models: PHP seeds the Mersenne Twister from 32 bits, and of
 * a hundred thousand requests two would draw the same numbers. Here its whole state is drawn
 * from the kernel, at its first use. */
void php_random_mt19937_seed_default(php_random_status_state_mt19937 *state) {
    fill_from_kernel(state->state, sizeof state->state);
    /* All of its numbers count as used: the first draw makes the next generation. */
    state->count = sizeof state->state / sizeof state->state[0];
    state->mode = MT_RAND_MT19937;
}

/* ---- engines made above the checkpoint ----------------------------------------------------- */

enum { ENGINES_MAX = 256 };
static php_random_engine *engines[ENGINES_MAX];
static uint32_t engine_count;

static bool is_pseudo_random(const zend_class_entry *class) {
    return instanceof_function(class, random_ce_Random_Engine_Mt19937) ||
           instanceof_function(class, random_ce_Random_Engine_PcgOneseq128XslRr64) ||
           instanceof_function(class, random_ce_Random_Engine_Xoshiro256StarStar);
}

HashTable *samovar_seeded_engines;

static bool has_own_seed(const zend_object *object) {
    return samovar_seeded_engines && zend_hash_index_exists(samovar_seeded_engines, object->handle);
}

static void find_engines(void) {
    engine_count = 0;
    for (uint32_t i = 1; i < EG(objects_store).top; i++) {
        zend_object *object = EG(objects_store).object_buckets[i];
        if (IS_OBJ_VALID(object) && engine_count < ENGINES_MAX && is_pseudo_random(object->ce) &&
            !has_own_seed(object)) {
            engines[engine_count++] = php_random_engine_from_obj(object);
        }
    }
}

static void reseed_engines(void) {
    for (uint32_t i = 0; i < engine_count; i++) {
        samovar_engine_seed(engines[i], draw_number());
    }
}

/* ---- libraries ----------------------------------------------------------------------------- */

static void (*gnutls_refresh)(void);
static void (*gcrypt_poll)(void);
static int (*snmp_callbacks)(int major, int minor, void *);

/* net-snmp/library/callback.h: called by its library, after the first settings are read. */
enum { SNMP_OF_LIBRARY = 0, SNMP_POST_PREMIB = 3 };

/* Done before the image is taken. Otherwise each reset of its generator would begin with
 * SQLite's whole initialization. */
void samovar_reseed_warm_up(void) {
    int (*initialize)(void) = (int (*)(void))loaded("libsqlite3.so.0", "sqlite3_initialize");
    if (initialize) {
        initialize();
    }
}

static void forget_sqlite(void) {
    void (*randomness)(int, void *) =
        (void (*)(int, void *))loaded("libsqlite3.so.0", "sqlite3_randomness");
    if (randomness) {
        randomness(0, NULL); /* "If N is less than one, the PRNG is reset" (sqlite.org). */
    }
}

static void forget_gmp(void) {
    const zend_module_entry *gmp = zend_hash_str_find_ptr(&module_registry, "gmp", 3);
    if (gmp && gmp->globals_ptr) {
        *(bool *)gmp->globals_ptr = false; /* rand_initialized: it seeds itself again */
    }
}

/* libbson/src/bson/bson-context-private.h: flags, then within the first BSON_CONTEXT_BYTES a
 * counter, five random bytes, and the number of the process that has drawn them. */
enum { BSON_FLAGS_CHECKS_PROCESS = 4, BSON_CONTEXT_BYTES = 48 };

/* MongoDB's ObjectId: each process draws its part once, and counts up. A request would draw the
 * same as the one before. libbson draws again when it finds itself in another process. */
static void forget_bson(void) {
    char *(*context)(void) = (char *(*)(void))dlsym(RTLD_DEFAULT, "bson_context_get_default");
    char *at = context ? context() : NULL;
    if (!at || !(*(uint32_t *)at & BSON_FLAGS_CHECKS_PROCESS)) {
        return;
    }
    for (size_t i = sizeof(uint64_t); i < BSON_CONTEXT_BYTES; i += sizeof(uint64_t)) {
        if (*(uint64_t *)(at + i) == (uint64_t)getpid()) {
            *(uint64_t *)(at + i) = 0;
        }
    }
}

/* libc's generators are called through interpose/random.c, which seeds them first. */
static bool libc_is_unseeded;

void samovar_reseed_prepare(void) {
    find_engines();
    forget_sqlite();
    forget_gmp();
    forget_bson();
    libc_is_unseeded = true;
    gnutls_refresh = (void (*)(void))loaded("libgnutls.so.30", "gnutls_rnd_refresh");
    gcrypt_poll = (void (*)(void))loaded("libgcrypt.so.20", "gcry_fast_random_poll");
    snmp_callbacks = (int (*)(int, int, void *))loaded("libnetsnmp.so.40", "snmp_call_callbacks");
}

void samovar_reseed_libc(void) {
    if (!libc_is_unseeded) {
        return;
    }
    libc_is_unseeded = false;
    struct {
        unsigned number;
        unsigned short state[3];
    } seeds;
    if (!fill_from_kernel(&seeds, sizeof seeds)) {
        samovar_leave_for(LEAVE_FATAL);
    }
    srandom(seeds.number);
    seed48(seeds.state);
}

static void reseed_libraries(void) {
    if (gnutls_refresh) {
        gnutls_refresh();
    }
    if (gcrypt_poll) {
        gcrypt_poll();
    }
    if (snmp_callbacks) {
        /* Draws the number with which version 3 encrypts its next message (RFC 3826, 3.1.2.1). */
        snmp_callbacks(SNMP_OF_LIBRARY, SNMP_POST_PREMIB, NULL);
    }
}

void samovar_reseed(void) {
    reseed_php();
    reseed_engines();
    reseed_libraries();
}
