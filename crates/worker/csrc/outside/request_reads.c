/* Notices that the boot reads the request: $_GET and the other inputs, entries of $_SERVER that
 * only a request has, php://input, and functions that return such data. There is no request, so
 * the boot gets nothing, and its result would apply to every visitor. Reported with the findings
 * of preflight.c.
 *
 * Code reads a superglobal with few opcodes, which no other variable uses. They are hooked in all
 * processes, because opcache shares compiled scripts: outside the boot the hook costs a call.
 * Functions and php://input are hooked during the boot only. */
#define _GNU_SOURCE
#include "outside/request_reads.h"
#include "boundary.h"
#include <php.h>
#include <php_ini.h>
#include <php_streams.h>
#include <php_variables.h>

enum {
    READS_MAX = 32, /* recorded; further ones are dropped */
    NAME_BYTES = 96,
    LINE_BYTES = 256,
    WHAT_BYTES = 512,
    DEFAULT_OPS_MAX = 64 /* of the right side of `??=` */
};

static const char *const ADVICE =
    "a boot has no request, so all requests use a result of empty values: read it after the "
    "checkpoint, or name it in `boot_reads` if this is intended";

static bool recording;
bool samovar_request_reads_pause;
static const char *allowed_lines = "";

static struct { char name[NAME_BYTES], line[LINE_BYTES], caller[LINE_BYTES]; } reads[READS_MAX];
static uint32_t read_count;

/* ---- records ------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end, size_t len) {
    const size_t text_len = strlen(text);
    return text_len >= len && memcmp(text + text_len - len, end, len) == 0;
}

/* A line of the setting is the name of the data, or the end of the path of a file. */
static bool is_allowed(const char *name, const char *file) {
    for (const char *at = allowed_lines; *at;) {
        const size_t len = strcspn(at, "\n");
        if ((strlen(name) == len && memcmp(name, at, len) == 0) ||
            (len > 4 && ends_with(file, at, len))) {
            return true;
        }
        at += len + (at[len] == '\n');
    }
    return false;
}

/* Writes the place of the outermost code: the line of the front controller that led here. */
static void put_caller(char *to, const char *file) {
    const zend_execute_data *outermost = NULL;
    for (const zend_execute_data *at = EG(current_execute_data); at; at = at->prev_execute_data) {
        if (at->func && ZEND_USER_CODE(at->func->type) && at->opline) {
            outermost = at;
        }
    }
    const zend_string *outer = outermost ? outermost->func->op_array.filename : NULL;
    *to = 0;
    if (outer && strcmp(ZSTR_VAL(outer), file) != 0) {
        snprintf(to, LINE_BYTES, "%s:%u", ZSTR_VAL(outer), outermost->opline->lineno);
    }
}

static void record(const char *name) {
    if (!recording || samovar_request_reads_pause || read_count == READS_MAX) {
        return;
    }
    for (uint32_t i = 0; i < read_count; i++) {
        if (strcmp(reads[i].name, name) == 0) {
            return;
        }
    }
    const char *file = zend_get_executed_filename();
    if (is_allowed(name, file)) {
        return;
    }
    snprintf(reads[read_count].name, NAME_BYTES, "%s", name);
    snprintf(reads[read_count].line, LINE_BYTES, "%s:%u", file, zend_get_executed_lineno());
    put_caller(reads[read_count].caller, file);
    read_count++;
}

/* ---- names --------------------------------------------------------------------------------- */

/* Entries of $_SERVER that only a request has. */
static const char *const names[] = {
    "AUTH_TYPE",      "CONTENT_LENGTH", "CONTENT_TYPE",    "DOCUMENT_URI",    "HTTPS",
    "ORIG_PATH_INFO", "PATH_INFO",      "PATH_TRANSLATED", "PHP_AUTH_DIGEST", "PHP_AUTH_PW",
    "PHP_AUTH_USER",  "QUERY_STRING",   "REMOTE_ADDR",     "REMOTE_HOST",     "REMOTE_PORT",
    "REMOTE_USER",    "REQUEST_ID",     "REQUEST_METHOD",  "REQUEST_SCHEME",  "REQUEST_URI",
    "SERVER_ADDR",    "SERVER_NAME",    "SERVER_PORT",     "SERVER_PROTOCOL",
};
static const char *const prefixes[] = {"HTTP_", "SSL_CLIENT_"};

static bool is_of_request(const char *name) {
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static const HashTable *superglobal(const char *name) {
    zval *array = zend_hash_str_find_ind(&EG(symbol_table), name, strlen(name));
    if (array) {
        ZVAL_DEREF(array);
    }
    return array && Z_TYPE_P(array) == IS_ARRAY ? Z_ARRVAL_P(array) : &zend_empty_array;
}

/* An entry that the boot has set itself is no request's. */
static void record_entry(const char *function, const zval *key) {
    char name[NAME_BYTES];
    if (key && Z_TYPE_P(key) == IS_STRING && is_of_request(Z_STRVAL_P(key)) &&
        !zend_hash_exists(superglobal("_SERVER"), Z_STR_P(key))) {
        snprintf(name, sizeof name, function, Z_STRVAL_P(key));
        record(name);
    }
}

/* ---- superglobals -------------------------------------------------------------------------- */

static const char *const inputs[] = {"_GET", "_POST", "_COOKIE", "_FILES", "_REQUEST"};

static const zend_uchar hooked[] = {ZEND_FETCH_R, ZEND_FETCH_IS, ZEND_FETCH_FUNC_ARG};
enum { HOOKED = sizeof hooked / sizeof hooked[0] };
/* Handlers of other extensions. */
static user_opcode_handler_t former[HOOKED];

static const zval *operand(const zend_execute_data *execute_data, const zend_op *op,
                           zend_uchar type, znode_op node) {
    if (type == IS_CONST) {
        return RT_CONSTANT(op, node);
    }
    if (type == IS_UNUSED) {
        return NULL;
    }
    const zval *value = EX_VAR(node.var);
    ZVAL_DEREF(value);
    return value;
}

static bool uses(const zend_op *result, zend_uchar type, znode_op node) {
    return type == result->result_type && node.var == result->result.var;
}

/* Returns the key that the next opcode looks up in the array fetched by `op`. NULL: it uses the
 * array as a whole. */
static const zval *key_after(const zend_execute_data *execute_data, const zend_op *op) {
    const zend_op *next = op + 1;
    switch (next->opcode) {
    case ZEND_FETCH_DIM_R:
    case ZEND_FETCH_DIM_IS:
    case ZEND_FETCH_DIM_FUNC_ARG:
    case ZEND_ISSET_ISEMPTY_DIM_OBJ:
        return uses(op, next->op1_type, next->op1)
                   ? operand(execute_data, next, next->op2_type, next->op2)
                   : NULL;
    case ZEND_ARRAY_KEY_EXISTS:
        return uses(op, next->op2_type, next->op2)
                   ? operand(execute_data, next, next->op1_type, next->op1)
                   : NULL;
    default:
        return NULL;
    }
}

static bool is_global(const zend_op *op) {
    return op->op1_type == IS_CONST && op->extended_value & ZEND_FETCH_GLOBAL;
}

/* `$_GET['page'] ??= 1` only sets a default: the code in front of its jump writes the array. */
static bool sets_default(const zend_op *op) {
    const zend_op *at = op + 2;
    if (op->opcode != ZEND_FETCH_IS || at[-1].opcode != ZEND_FETCH_DIM_IS ||
        at->opcode != ZEND_COALESCE) {
        return false;
    }
    const zend_op *end = OP_JMP_ADDR(at, at->op2);
    for (int i = 0; i < DEFAULT_OPS_MAX && at < end; i++, at++) {
        if (at->opcode == ZEND_FETCH_W && is_global(at) &&
            zend_string_equals(Z_STR_P(RT_CONSTANT(at, at->op1)),
                               Z_STR_P(RT_CONSTANT(op, op->op1)))) {
            return true;
        }
    }
    return false;
}

/* isset($_SERVER['REQUEST_METHOD']) asks whether there is a request at all. */
static bool asks_for_any(const zend_op *next, const zval *key) {
    const bool is_isset =
        next->opcode == ZEND_ISSET_ISEMPTY_DIM_OBJ && !(next->extended_value & ZEND_ISEMPTY);
    return (is_isset || next->opcode == ZEND_ARRAY_KEY_EXISTS) && key &&
           Z_TYPE_P(key) == IS_STRING && strcmp(Z_STRVAL_P(key), "REQUEST_METHOD") == 0;
}

static void look(const zend_execute_data *execute_data) {
    const zend_op *op = execute_data->opline;
    if (!is_global(op) || sets_default(op)) {
        return;
    }
    const zend_string *name = Z_STR_P(RT_CONSTANT(op, op->op1));
    if (zend_string_equals_literal(name, "_SERVER")) {
        const zval *key = key_after(execute_data, op);
        if (!asks_for_any(op + 1, key)) {
            record_entry("$_SERVER['%s']", key);
        }
        return;
    }
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        if (strcmp(ZSTR_VAL(name), inputs[i]) == 0 &&
            zend_hash_num_elements(superglobal(inputs[i])) == 0) {
            char shown[NAME_BYTES];
            snprintf(shown, sizeof shown, "$%s", inputs[i]);
            record(shown);
        }
    }
}

static int on_fetch(zend_execute_data *execute_data) {
    if (UNEXPECTED(recording)) {
        look(execute_data);
    }
    for (int i = 0; i < HOOKED; i++) {
        if (hooked[i] == execute_data->opline->opcode && former[i]) {
            return former[i](execute_data);
        }
    }
    return ZEND_USER_OPCODE_DISPATCH;
}

static bool is_set(const char *text, const char *const *values) {
    for (; *values; values++) {
        if (strcasecmp(text, *values) == 0) {
            return true;
        }
    }
    return false;
}

/* The JIT refuses to work with hooked opcodes. Its settings are not registered yet, but read. */
static bool may_compile(void) {
    static const char *const off[] = {"", "0", "off", "no", "false", "disable", NULL};
    static const char *const none[] = {"", "0", NULL};
    zval *mode = cfg_get_entry("opcache.jit", sizeof "opcache.jit" - 1);
    zval *room = cfg_get_entry("opcache.jit_buffer_size", sizeof "opcache.jit_buffer_size" - 1);
    if (mode && Z_TYPE_P(mode) == IS_STRING) {
        return !is_set(Z_STRVAL_P(mode), off);
    }
    return room && Z_TYPE_P(room) == IS_STRING && !is_set(Z_STRVAL_P(room), none);
}

void samovar_request_reads_startup(void) {
    if (may_compile()) {
        return;
    }
    for (int i = 0; i < HOOKED; i++) {
        former[i] = zend_get_user_opcode_handler(hooked[i]);
        zend_set_user_opcode_handler(hooked[i], on_fetch);
    }
}

/* ---- functions ----------------------------------------------------------------------------- */

static struct {
    const char *name;
    zend_function *function;
    zif_handler inner;
} functions[] = {
    {"filter_input", NULL, NULL},           {"filter_input_array", NULL, NULL},
    {"filter_has_var", NULL, NULL},         {"getallheaders", NULL, NULL},
    {"apache_request_headers", NULL, NULL}, {"frankenphp_request_headers", NULL, NULL},
    {"request_parse_body", NULL, NULL},     {"session_start", NULL, NULL},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

/* filter_input(INPUT_ENV, …) and entries of $_SERVER that a boot has are no requests'. */
static bool asks_for_request(const zend_execute_data *execute_data) {
    if (strncmp(ZSTR_VAL(execute_data->func->common.function_name), "filter_", 7) != 0) {
        return true;
    }
    const zval *source = ZEND_NUM_ARGS() > 0 ? ZEND_CALL_ARG(execute_data, 1) : NULL;
    if (!source || Z_TYPE_P(source) != IS_LONG || Z_LVAL_P(source) != PARSE_SERVER) {
        return !source || Z_TYPE_P(source) != IS_LONG || Z_LVAL_P(source) != PARSE_ENV;
    }
    const zval *key = ZEND_NUM_ARGS() > 1 ? ZEND_CALL_ARG(execute_data, 2) : NULL;
    return !key || Z_TYPE_P(key) != IS_STRING || is_of_request(Z_STRVAL_P(key));
}

static ZEND_NAMED_FUNCTION(noting) {
    if (asks_for_request(execute_data)) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "%s()", ZSTR_VAL(execute_data->func->common.function_name));
        record(name);
    }
    for (size_t i = 0; i < FUNCTIONS; i++) {
        if (functions[i].function == execute_data->func) {
            functions[i].inner(INTERNAL_FUNCTION_PARAM_PASSTHRU);
            return;
        }
    }
}

static void hook_functions(void) {
    for (size_t i = 0; i < FUNCTIONS; i++) {
        zend_function *f = zend_hash_str_find_ptr(CG(function_table), functions[i].name,
                                                  strlen(functions[i].name));
        if (f && f->type == ZEND_INTERNAL_FUNCTION) {
            functions[i].function = f;
            functions[i].inner = f->internal_function.handler;
            f->internal_function.handler = noting;
        }
    }
}

static void unhook_functions(void) {
    for (size_t i = 0; i < FUNCTIONS; i++) {
        if (functions[i].function) {
            functions[i].function->internal_function.handler = functions[i].inner;
            functions[i].function = NULL;
        }
    }
}

void samovar_request_reads_getenv(const char *name, size_t len) {
    char shown[NAME_BYTES];
    if (recording && len < NAME_BYTES - 16 && is_of_request(name) && !getenv(name)) {
        snprintf(shown, sizeof shown, "getenv('%s')", name);
        record(shown);
    }
}

/* ---- php://input --------------------------------------------------------------------------- */

static const php_stream_wrapper *wrapper;
static php_stream_wrapper noting_wrapper;
static php_stream_wrapper_ops noting_ops;

static php_stream *open_noting(php_stream_wrapper *own, const char *path, const char *mode,
                               int options, zend_string **opened,
                               php_stream_context *context STREAMS_DC) {
    (void)own;
    if (strcasecmp(path, "php://input") == 0) {
        record("php://input");
    }
    return wrapper->wops->stream_opener((php_stream_wrapper *)wrapper, path, mode, options, opened,
                                        context STREAMS_REL_CC);
}

static zval *wrapper_entry(void) {
    return zend_hash_str_find(php_stream_get_url_stream_wrappers_hash_global(), ZEND_STRL("php"));
}

static void hook_input(void) {
    zval *entry = wrapper_entry();
    if (entry) {
        wrapper = Z_PTR_P(entry);
        noting_ops = *wrapper->wops;
        noting_ops.stream_opener = open_noting;
        noting_wrapper = *wrapper;
        noting_wrapper.wops = &noting_ops;
        Z_PTR_P(entry) = &noting_wrapper;
    }
}

/* Streams that the boot has opened keep the copy. */
static void unhook_input(void) {
    zval *entry = wrapper_entry();
    if (entry && Z_PTR_P(entry) == &noting_wrapper) {
        Z_PTR_P(entry) = (void *)wrapper;
    }
}

/* ---- begin, end, report -------------------------------------------------------------------- */

void samovar_request_reads_begin(const char *allowed) {
    allowed_lines = allowed;
    read_count = 0;
    hook_functions();
    hook_input();
    recording = true;
}

void samovar_request_reads_end(void) {
    if (recording) {
        unhook_functions();
        unhook_input();
    }
    recording = false;
}

static void report_line(uint32_t first) {
    char what[WHAT_BYTES];
    size_t len =
        (size_t)snprintf(what, sizeof what, "reads of request data: %s", reads[first].name);
    for (uint32_t i = first + 1; i < read_count; i++) {
        if (strcmp(reads[i].line, reads[first].line) == 0 && len < sizeof what) {
            len += (size_t)snprintf(what + len, sizeof what - len, ", %s", reads[i].name);
        }
    }
    if (*reads[first].caller && len < sizeof what) {
        snprintf(what + len, sizeof what - len, ", called from %s", reads[first].caller);
    }
    samovar_finding("request", "note", what, reads[first].line, ADVICE);
}

/* One finding per line of PHP: code that makes a request object reads several superglobals. */
void samovar_request_reads_report(void) {
    for (uint32_t i = 0; i < read_count; i++) {
        bool is_first = true;
        for (uint32_t n = 0; n < i; n++) {
            is_first = is_first && strcmp(reads[n].line, reads[i].line) != 0;
        }
        if (is_first) {
            report_line(i);
        }
    }
}
