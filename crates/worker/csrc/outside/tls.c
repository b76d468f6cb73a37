/* Counts TLS sessions: OpenSSL reports each of them through the callbacks of an extra-data
 * index. OpenSSL is found by name, because it is loaded by extensions, or not at all. */
#define _GNU_SOURCE
#include "outside/tls.h"
#include <dlfcn.h>
#include <stddef.h>

static long live;

static void tls_made(void *parent, void *ptr, void *ad, int idx, long argl, void *argp) {
    (void)parent, (void)ptr, (void)ad, (void)idx, (void)argl, (void)argp;
    live++;
}

static void tls_freed(void *parent, void *ptr, void *ad, int idx, long argl, void *argp) {
    (void)parent, (void)ptr, (void)ad, (void)idx, (void)argl, (void)argp;
    live--;
}

typedef void extra_data_callback(void *, void *, void *, int, long, void *);
typedef int new_index(int kind, long, void *, extra_data_callback *, void *, extra_data_callback *);
enum { TLS_SESSIONS = 0 }; /* openssl/crypto.h: CRYPTO_EX_INDEX_SSL */

void samovar_tls_startup(void) {
    new_index *watch = (new_index *)dlsym(RTLD_DEFAULT, "CRYPTO_get_ex_new_index");
    if (watch) {
        watch(TLS_SESSIONS, 0, NULL, tls_made, NULL, tls_freed);
    }
}

long samovar_tls_live(void) {
    return live;
}
