/* Random generators: none may go on where the image stood, or all requests would draw the same.
 *
 * OpenSSL and those that ask the kernel each time need nothing: OpenSSL is given a method that asks
 * the kernel. The others get a new seed after every rollback and fork: PHP's Mersenne Twister (also
 * behind rand, shuffle, str_shuffle, array_rand) and combined LCG (lcg_value, uniqid with more
 * entropy), the session's own, engine objects made above the checkpoint without a seed of their
 * own, GMP, libc's rand, random and drand48, SQLite's randomblob and random(), GnuTLS, libgcrypt.
 */
#define _GNU_SOURCE
#include "samovar.h"
#include "compat.h"
#include "image.h"
#include <dlfcn.h>
#include <ext/standard/basic_functions.h>
#include <stdlib.h>
#include <sys/random.h>

/* A PHP without sessions has no such symbol. */
#pragma weak ps_globals

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

/* How many TLS sessions exist: OpenSSL tells of each by the callbacks of an extra-data index. */
static long live_tls;

static void tls_made(void *parent, void *ptr, void *ad, int idx, long argl, void *argp) {
    (void)parent, (void)ptr, (void)ad, (void)idx, (void)argl, (void)argp;
    live_tls++;
}

static void tls_freed(void *parent, void *ptr, void *ad, int idx, long argl, void *argp) {
    (void)parent, (void)ptr, (void)ad, (void)idx, (void)argl, (void)argp;
    live_tls--;
}

long samovar_live_tls(void) {
    return live_tls;
}

typedef void extra_data_callback(void *, void *, void *, int, long, void *);
typedef int new_index(int kind, long, void *, extra_data_callback *, void *, extra_data_callback *);
enum { TLS_SESSIONS = 0 }; /* openssl/crypto.h: CRYPTO_EX_INDEX_SSL */

void samovar_reseed_startup(void) {
    int (*set_method)(const rand_method *) = dlsym(RTLD_DEFAULT, "RAND_set_rand_method");
    new_index *watch = (new_index *)dlsym(RTLD_DEFAULT, "CRYPTO_get_ex_new_index");
    if (set_method) {
        set_method(&from_kernel);
    }
    if (watch) {
        watch(TLS_SESSIONS, 0, NULL, tls_made, NULL, tls_freed);
    }
}

/* ---- PHP's own ----------------------------------------------------------------------------- */

/* Entropy costs a system call: it is drawn for many rollbacks at once, and lies in memory that no
 * rollback brings back. */
static void draw(void *to, size_t len) {
    image_survivors *s = samovar_survivors;
    if (!s) {
        fill_from_kernel(to, len);
        return;
    }
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
    RANDOM_G(mt19937_seeded) = false; /* Seeds itself from the kernel when it is next used. */
    uint64_t number = draw_number();
    samovar_lcg_set((int32_t)(number & 0x3fffffff) + 1, (int32_t)(number >> 32 & 0x3fffffff) + 1);
    if (&ps_globals) {
        samovar_session_random_forget();
    }
}

/* Instead of libphp's, for all models: PHP seeds the Mersenne Twister from 32 bits, and of a
 * hundred thousand requests two would draw the same numbers. Here its whole state is drawn from the
 * kernel, when it is first used. */
void php_random_mt19937_seed_default(php_random_status_state_mt19937 *state) {
    fill_from_kernel(state->state, sizeof state->state);
    /* All of its numbers are used: the first draw makes the next generation. */
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

static void (*sqlite_randomness)(int, void *);
static void (*gnutls_refresh)(void);
static void (*gcrypt_poll)(void);
static zend_module_entry *gmp;

/* Only those that are in the process already: a library that is loaded later seeds itself. */
static void *loaded(const char *library, const char *function) {
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    return handle ? dlsym(handle, function) : NULL;
}

/* Before the image: or each reset of its generator would begin with all of its start. */
void samovar_reseed_warm_up(void) {
    int (*initialize)(void) = (int (*)(void))loaded("libsqlite3.so.0", "sqlite3_initialize");
    if (initialize) {
        initialize();
    }
}

void samovar_reseed_prepare(void) {
    find_engines();
    sqlite_randomness = (void (*)(int, void *))loaded("libsqlite3.so.0", "sqlite3_randomness");
    gnutls_refresh = (void (*)(void))loaded("libgnutls.so.30", "gnutls_rnd_refresh");
    gcrypt_poll = (void (*)(void))loaded("libgcrypt.so.20", "gcry_fast_random_poll");
    gmp = zend_hash_str_find_ptr(&module_registry, "gmp", 3);
}

static void reseed_libc(void) {
    uint64_t number = draw_number();
    srandom((unsigned)number);
    unsigned short state[3] = {(unsigned short)(number >> 32), (unsigned short)(number >> 40),
                               (unsigned short)(number >> 48)};
    seed48(state);
}

static void reseed_libraries(void) {
    if (sqlite_randomness) {
        sqlite_randomness(0, NULL); /* "If N is less than one, the PRNG is reset" (sqlite.org). */
    }
    if (gnutls_refresh) {
        gnutls_refresh();
    }
    if (gcrypt_poll) {
        gcrypt_poll();
    }
    if (gmp && gmp->globals_ptr) {
        *(bool *)gmp->globals_ptr = false; /* rand_initialized: it seeds itself anew. */
    }
}

void samovar_reseed(void) {
    reseed_php();
    reseed_engines();
    reseed_libc();
    reseed_libraries();
}
