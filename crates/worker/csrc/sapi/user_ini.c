/* activate: .user.ini files, read from the document root down to the script's folder, as in
 * php-fpm.
 *
 * Parsed files are kept for user_ini.cache_ttl seconds per folder, as in php-src fpm_main.c. */
#include "sapi/user_ini.h"
#include <php.h>
#include <SAPI.h>
#include <php_ini.h>

enum { FOLDERS_MAX = 1024 }; /* then the cache is emptied: requests determine the folders */

typedef struct {
    time_t expires;
    HashTable settings;
} folder;

static HashTable folders;
static bool folders_ready;

static void free_folder(zval *zv) {
    folder *f = Z_PTR_P(zv);
    zend_hash_destroy(&f->settings);
    pefree(f, 1);
}

static void parse_folders(const char *root, size_t root_len, char *path, HashTable *settings) {
    if (strncmp(root, path, root_len) != 0) {
        php_parse_user_ini_file(path, PG(user_ini_filename), settings);
        return;
    }
    for (char *slash = path + root_len; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        php_parse_user_ini_file(path, PG(user_ini_filename), settings);
        *slash = '/';
    }
}

static folder *lookup(const char *root, size_t root_len, char *path, size_t len) {
    if (!folders_ready || zend_hash_num_elements(&folders) >= FOLDERS_MAX) {
        if (folders_ready) {
            zend_hash_destroy(&folders);
        }
        zend_hash_init(&folders, 8, NULL, free_folder, 1);
        folders_ready = true;
    }
    folder *f = zend_hash_str_find_ptr(&folders, path, len);
    if (!f) {
        f = pemalloc(sizeof *f, 1);
        f->expires = 0;
        zend_hash_init(&f->settings, 0, NULL, (dtor_func_t)config_zval_dtor, 1);
        zend_hash_str_update_ptr(&folders, path, len, f);
    }
    time_t now = time(NULL);
    if (now > f->expires) {
        zend_hash_clean(&f->settings);
        parse_folders(root, root_len, path, &f->settings);
        f->expires = now + PG(user_ini_cache_ttl);
    }
    return f;
}

void samovar_user_ini_activate(const char *root, size_t root_len, const char *script) {
    if (!PG(user_ini_filename) || !*PG(user_ini_filename)) {
        return;
    }
    while (root_len > 0 && root[root_len - 1] == '/') {
        root_len--;
    }
    char path[MAXPATHLEN];
    const char *name = strrchr(script, '/');
    size_t len = name ? (size_t)(name - script) + 1 : 0;
    if (len == 0 || len >= sizeof path) {
        return;
    }
    memcpy(path, script, len);
    path[len] = 0;
    folder *f = lookup(root, root_len, path, len);
    if (zend_hash_num_elements(&f->settings) > 0) {
        php_ini_activate_config(&f->settings, PHP_INI_PERDIR, PHP_INI_STAGE_HTACCESS);
    }
}
