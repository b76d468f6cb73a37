/* Threads of one process that each run a PHP script of the same file, as FrankenPHP and Apache's
 * worker do.
 *
 * threads FILE COUNT
 *
 * Each thread has its number in the variable $thread. The next one starts when it has written
 * something. */
#include <sapi/embed/php_embed.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

ZEND_TSRMLS_CACHE_EXTERN()
ZEND_TSRMLS_CACHE_DEFINE()

static sem_t is_ready;
static const char *script;

/* Receives a script's output, which shows that the script has begun. */
static size_t hear(const char *text, size_t len)
{
    sem_post(&is_ready);
    return len;
}

static void run(long number)
{
    zend_file_handle file;
    zend_first_try {
        zval thread;
        ZVAL_LONG(&thread, number);
        zend_hash_str_update(&EG(symbol_table), "thread", strlen("thread"), &thread);
        zend_stream_init_filename(&file, script);
        php_execute_script(&file);
        zend_destroy_file_handle(&file);
    } zend_end_try();
}

static void *begin(void *number)
{
    ts_resource(0);
    ZEND_TSRMLS_CACHE_UPDATE();
    if (php_request_startup() == SUCCESS) {
        run((long)(intptr_t)number);
        php_request_shutdown(NULL);
    }
    ts_free_thread();
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        return 2;
    }
    script = argv[1];
    sem_init(&is_ready, 0, 0);
    php_embed_module.ub_write = hear;
    if (php_embed_init(0, NULL) != SUCCESS) {
        return 1;
    }
    ZEND_TSRMLS_CACHE_UPDATE();
    for (long number = 1; number <= atol(argv[2]); number++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, begin, (void *)(intptr_t)number) != 0) {
            return 1;
        }
        sem_wait(&is_ready);
    }
    puts("ready");
    fflush(stdout);
    /* The test ends this process. */
    getchar();
    _exit(0);
}
