/* `samovar lint`: compiles files without running them, as `php -l` does (php-src main/main.c,
 * php_lint_script), but many in one process. Each has a request of its own, so the functions and
 * classes of one file are unknown to the next. */
#include "boundary.h"
#include "compat.h"
#include "model/console.h"
#include <php.h>
#include <php_main.h>
#include <zend_compile.h>
#include <zend_exceptions.h>
#include <zend_stream.h>
#include <string.h>

/* ---- messages ------------------------------------------------------------------------------ */

/* Errors that end a request. */
#define FATAL (E_ERROR | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR)

/* PHP's names (php-src main/main.c, php_error_cb). */
static const char *kind_of(int type) {
    switch (type) {
    case E_PARSE:
        return "Parse error";
    case E_WARNING:
    case E_CORE_WARNING:
    case E_COMPILE_WARNING:
    case E_USER_WARNING:
        return "Warning";
    case E_NOTICE:
    case E_USER_NOTICE:
        return "Notice";
    case E_DEPRECATED:
    case E_USER_DEPRECATED:
        return "Deprecated";
    default:
        return type & FATAL ? "Fatal error" : "Message";
    }
}

/* Independent of error_reporting: a file sets it only when it runs. */
static void on_message(int type, zend_string *file, const uint32_t line, zend_string *message) {
    (void)file;
    const int bare = type & E_ALL;
    samovar_source_message(kind_of(bare), (bare & (FATAL | E_PARSE)) != 0, line, ZSTR_VAL(message),
                           ZSTR_LEN(message));
    if (bare & FATAL && !(type & E_DONT_BAIL)) {
        zend_bailout();
    }
}

/* ---- names --------------------------------------------------------------------------------- */

static const zend_module_entry *own;

static int is_own_function(zval *value) {
    const zend_function *f = Z_PTR_P(value);
    return f->type == ZEND_INTERNAL_FUNCTION && f->internal_function.module == own
               ? ZEND_HASH_APPLY_REMOVE
               : ZEND_HASH_APPLY_KEEP;
}

static int is_own_class(zval *value) {
    const zend_class_entry *ce = Z_PTR_P(value);
    return ce->type == ZEND_INTERNAL_CLASS && ce->info.internal.module == own
               ? ZEND_HASH_APPLY_REMOVE
               : ZEND_HASH_APPLY_KEEP;
}

/* PHP's command line has none of Samovar's functions and classes: a file may declare them, for
 * other servers. Their memory stays, because the module may point to it. */
static void hide_own_names(void) {
    own = zend_hash_str_find_ptr(&module_registry, ZEND_STRL("samovar"));
    HashTable *const tables[] = {CG(function_table), CG(class_table)};
    const apply_func_t is_own[] = {is_own_function, is_own_class};
    for (size_t i = 0; own && i < sizeof tables / sizeof tables[0]; i++) {
        const dtor_func_t usual = tables[i]->pDestructor;
        tables[i]->pDestructor = NULL;
        zend_hash_apply(tables[i], is_own[i]);
        tables[i]->pDestructor = usual;
    }
}

/* ---- files --------------------------------------------------------------------------------- */

static void compile(const samovar_source *source) {
    zend_file_handle file;
    zend_string *name = zend_string_init(source->name, source->name_len, 0);
    zend_stream_init_filename_ex(&file, name);
    zend_string_release(name);
    zend_try {
        /* The scanner reads beyond the end. */
        file.buf = safe_emalloc(1, source->len, ZEND_MMAP_AHEAD);
        memcpy(file.buf, source->text, source->len);
        memset(file.buf + source->len, 0, ZEND_MMAP_AHEAD);
        file.len = source->len;
        CG(skip_shebang) = 1;
        /* Not zend_compile_file: opcache would look for the file, and keep it. */
        zend_op_array *code = compile_file(&file, ZEND_INCLUDE);
        if (code) {
            destroy_op_array(code);
            efree(code);
        }
    }
    zend_end_try();
    zend_try {
        if (EG(exception)) {
            zend_exception_error(EG(exception), E_ERROR);
        }
    }
    zend_end_try();
    zend_destroy_file_handle(&file);
}

void samovar_php_compile(void) {
    static char name[] = "samovar lint";
    char *words[] = {name, NULL};
    samovar_source source;
    hide_own_names();
    samovar_console_begin(1, words, false);
    while (samovar_next_source(&source)) {
        if (php_request_startup() == FAILURE) {
            return;
        }
        void (*const usual)(int, zend_string *, const uint32_t, zend_string *) = zend_error_cb;
        zend_error_cb = on_message;
        compile(&source);
        zend_error_cb = usual;
        php_request_shutdown(NULL);
    }
}
