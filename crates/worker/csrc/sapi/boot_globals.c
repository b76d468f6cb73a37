/* activate: adds entries of the boot to the superglobals of a request, mainly variables of a
 * .env file. A script that runs as a whole would have made them before its request is handled.
 *
 * An entry of the boot is one that differs between the array that the engine has filled, and the
 * array that code sees: the first write to a superglobal separates the two. */
#include "sapi/boot_globals.h"
#include "sapi/variables.h"
#include <SAPI.h>
#include <php_globals.h>
#include <zend_operators.h>

/* Which value wins if both the boot and the request have an entry. */
typedef enum { REQUEST_WINS, BOOT_WINS } precedence;

static const struct {
    const char *name;
    int filled; /* the engine's array, as an index of PG(http_globals); -1: it has none */
    precedence precedence;
} globals[BOOT_GLOBALS] = {
    {"_SERVER", TRACK_VARS_SERVER, REQUEST_WINS},
    {"_ENV", TRACK_VARS_ENV, BOOT_WINS},
    {"_GET", TRACK_VARS_GET, REQUEST_WINS},
    {"_POST", TRACK_VARS_POST, REQUEST_WINS},
    {"_COOKIE", TRACK_VARS_COOKIE, REQUEST_WINS},
    {"_FILES", TRACK_VARS_FILES, REQUEST_WINS},
    {"_REQUEST", -1, REQUEST_WINS},
};
enum { SERVER = 0 };

typedef struct {
    zend_string *key; /* NULL: `number` is the key */
    zend_ulong number;
    zval value; /* undefined: the boot has removed the entry */
    /* Value of the process's environment that the boot has replaced; NULL: none. It is below the
     * entries of a request in $_SERVER, and this one takes its place. */
    const zend_string *replaced;
} entry;

static struct {
    entry *entries;
    uint32_t count;
} of_boot[BOOT_GLOBALS];
static bool has_entries;

/* ---- save ---------------------------------------------------------------------------------- */

static zval *published(int i) {
    zval *array =
        zend_hash_str_find_ind(&EG(symbol_table), globals[i].name, strlen(globals[i].name));
    if (array) {
        ZVAL_DEREF(array);
    }
    return array;
}

static const zval *filled(int i) {
    return globals[i].filled < 0 ? NULL : &PG(http_globals)[globals[i].filled];
}

static zval *find(const HashTable *in, zend_string *key, zend_ulong number) {
    return key ? zend_hash_find(in, key) : zend_hash_index_find(in, number);
}

static void add_entry(int i, zend_string *key, zend_ulong number, zval *value) {
    entry *e = &of_boot[i].entries[of_boot[i].count++];
    e->key = key ? zend_string_copy(key) : NULL;
    e->number = number;
    e->replaced = i == SERVER && key ? samovar_environment_value(key) : NULL;
    ZVAL_UNDEF(&e->value);
    if (value) {
        ZVAL_COPY_DEREF(&e->value, value);
    }
}

static void save(int i) {
    const zval *now = published(i), *before = filled(i);
    if (!now || Z_TYPE_P(now) != IS_ARRAY) {
        return;
    }
    const bool has_before = before && Z_TYPE_P(before) == IS_ARRAY;
    const HashTable *own = Z_ARRVAL_P(now);
    const HashTable *old = has_before ? Z_ARRVAL_P(before) : &zend_empty_array;
    if (own == old) {
        return;
    }
    of_boot[i].entries =
        safe_emalloc(zend_hash_num_elements(own) + zend_hash_num_elements(old), sizeof(entry), 0);
    zend_string *key;
    zend_ulong number;
    zval *value;
    ZEND_HASH_FOREACH_KEY_VAL((HashTable *)own, number, key, value) {
        zval *former = find(old, key, number);
        ZVAL_DEREF(value);
        if (!former || !zend_is_identical(former, value)) {
            add_entry(i, key, number, value);
        }
    }
    ZEND_HASH_FOREACH_END();
    ZEND_HASH_FOREACH_KEY_VAL((HashTable *)old, number, key, value) {
        if (!find(own, key, number)) {
            add_entry(i, key, number, NULL);
        }
    }
    ZEND_HASH_FOREACH_END();
    has_entries = has_entries || of_boot[i].count > 0;
}

void samovar_boot_globals_save(void) {
    samovar_boot_globals_drop();
    for (int i = 0; i < BOOT_GLOBALS; i++) {
        save(i);
    }
    samovar_server_entries_added = of_boot[SERVER].count;
}

void samovar_boot_globals_drop(void) {
    for (int i = 0; i < BOOT_GLOBALS; i++) {
        for (uint32_t n = 0; n < of_boot[i].count; n++) {
            if (of_boot[i].entries[n].key) {
                zend_string_release(of_boot[i].entries[n].key);
            }
            zval_ptr_dtor(&of_boot[i].entries[n].value);
        }
        if (of_boot[i].entries) {
            efree(of_boot[i].entries);
        }
        of_boot[i].entries = NULL;
        of_boot[i].count = 0;
    }
    has_entries = false;
    samovar_server_entries_added = 0;
}

/* ---- add ----------------------------------------------------------------------------------- */

/* Returns true if the request has no value of its own for the entry. */
static bool is_open(const entry *e, const zval *present) {
    return !present ||
           (e->replaced && Z_TYPE_P(present) == IS_STRING && Z_STR_P(present) == e->replaced);
}

static void add(HashTable *to, const entry *e, precedence who) {
    const zval *present = find(to, e->key, e->number);
    if (who == REQUEST_WINS && !is_open(e, present)) {
        return;
    }
    if (Z_ISUNDEF(e->value)) {
        if (e->key) {
            zend_hash_del(to, e->key);
        } else {
            zend_hash_index_del(to, e->number);
        }
        return;
    }
    zval value;
    ZVAL_COPY(&value, (zval *)&e->value);
    if (e->key) {
        zend_hash_update(to, e->key, &value);
    } else {
        zend_hash_index_update(to, e->number, &value);
    }
}

void samovar_boot_globals_add(void) {
    if (EXPECTED(!has_entries)) {
        return;
    }
    for (int i = 0; i < BOOT_GLOBALS; i++) {
        zval *array = of_boot[i].count > 0 ? published(i) : NULL;
        if (!array || Z_TYPE_P(array) != IS_ARRAY) {
            continue;
        }
        if (i == SERVER) {
            /* Not separated, because a copy of the array costs more than the entries. The engine
             * reads a few names of the request in it. */
            HT_ALLOW_COW_VIOLATION(Z_ARRVAL_P(array));
        } else {
            SEPARATE_ARRAY(array);
        }
        for (uint32_t n = 0; n < of_boot[i].count; n++) {
            add(Z_ARRVAL_P(array), &of_boot[i].entries[n], globals[i].precedence);
        }
    }
}

/* ---- Samovar\warmup() ---------------------------------------------------------------------- */

void samovar_boot_globals_note(boot_globals *now) {
    for (int i = 0; i < BOOT_GLOBALS; i++) {
        zval *array = published(i);
        ZVAL_UNDEF(&now->arrays[i]);
        if (array) {
            ZVAL_COPY(&now->arrays[i], array);
        }
    }
}

void samovar_boot_globals_restore(boot_globals *now) {
    for (int i = 0; i < BOOT_GLOBALS; i++) {
        zval *former = &now->arrays[i], *array = published(i);
        if (Z_ISUNDEF_P(former) && filled(i)) {
            ZVAL_COPY(former, (zval *)filled(i)); /* Filled meanwhile, on its first use. */
        }
        if (Z_ISUNDEF_P(former) || !array) {
            zval_ptr_dtor(former);
            continue;
        }
        zval written;
        ZVAL_COPY_VALUE(&written, array);
        ZVAL_COPY_VALUE(array, former);
        zval_ptr_dtor(&written);
    }
}
