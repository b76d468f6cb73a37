/* take, run: FrankenPHP's interface for PHP code, so that worker scripts written for it run
 * unchanged.
 *
 * frankenphp_handle_request() is one iteration of Samovar\serve()'s loop (resident.c). Its first
 * call begins serving, and the code above it is the boot. The loop belongs to the script, and so
 * does its end: a fresh worker then takes over. Written from FrankenPHP's documentation. */
#include "model/frankenphp.h"
#include "insight/request_accounting.h"
#include "model/checkpoint.h"
#include "model/resident.h"
#include "model/script.h"
#include "sapi/sapi.h"
#include <zend_exceptions.h>
#include <zend_smart_str.h>
#include <ext/json/php_json.h>
#include <ext/spl/spl_exceptions.h>
#include "functions/arginfo/constants.h"
#include "functions/arginfo/prototypes.h"

enum { CONTEXT_DEPTH_MAX = 64 };

bool samovar_frankenphp_handled;

/* ---- frankenphp_handle_request ------------------------------------------------------------- */

/* In FrankenPHP a worker continues after its client has disconnected, without a setting. */
static void ignore_user_abort(void) {
    zend_string *name = zend_string_init(ZEND_STRL("ignore_user_abort"), 0);
    zend_alter_ini_entry_chars(name, "1", 1, PHP_INI_USER, PHP_INI_STAGE_RUNTIME);
    zend_string_release(name);
}

static bool serve(samovar_handler *handler) {
    if (!samovar_serving) {
        ignore_user_abort();
        samovar_serving_begin(handler, (zend_long)samovar_settings->rollback_every);
    }
    return samovar_serve_next(handler);
}

/* A worker that was not booted ahead has reached the call in a request, as with serve(). The
 * loop has one iteration, and output of the script after it has no reader, as in a worker. */
static bool serve_once(samovar_handler *handler) {
    if (samovar_frankenphp_handled) {
        return false;
    }
    samovar_frankenphp_handled = true;
    samovar_request_accounting_booted();
    samovar_meets_boot();
    samovar_call_handler(handler);
    samovar_finish_response();
    return true;
}

static bool boots(void) {
    return samovar_is_boot() && !samovar_below_checkpoint && !samovar_current;
}

static bool runs_application(void) {
    return samovar_place == SAMOVAR_RUNS_SCRIPTS && samovar_current &&
           (samovar_current->flags & SAMOVAR_APP);
}

ZEND_FUNCTION(frankenphp_handle_request) {
    samovar_handler handler = {0};
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_FUNC(handler.info, handler.cache)
    ZEND_PARSE_PARAMETERS_END();
    if (samovar_dispatching()) {
        zend_throw_exception(spl_ce_RuntimeException,
                             "frankenphp_handle_request() called while handling a request", 0);
        RETURN_THROWS();
    }
    if (samovar_outcome == SAMOVAR_RUN_STOP) {
        RETURN_FALSE; /* The server stops, and an earlier call has reported it. */
    }
    if (samovar_serving || boots()) {
        RETURN_BOOL(serve(&handler));
    }
    if (runs_application()) {
        RETURN_BOOL(serve_once(&handler));
    }
    zend_throw_exception(spl_ce_RuntimeException,
                         "frankenphp_handle_request() called while not in worker mode", 0);
}

/* ---- headers ------------------------------------------------------------------------------- */

/* The headers of an interim response (103) stay, because they belong to the final response, too.
 * 100 and 101 belong to the connection. */
ZEND_FUNCTION(headers_send) {
    zend_long status = 200;
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_LONG(status)
    ZEND_PARSE_PARAMETERS_END();
    if (status >= 100 && status < 200) {
        const bool may = samovar_current && !samovar_responded && !SG(headers_sent) && status > 101;
        const bool sent = may && samovar_send_interim((int)status);
        RETURN_LONG(sent ? SAPI_HEADER_SENT_SUCCESSFULLY : SAPI_HEADER_SEND_FAILED);
    }
    if (!samovar_current || samovar_responded || SG(headers_sent)) {
        RETURN_LONG(SUCCESS);
    }
    SG(sapi_headers).http_response_code = (int)status;
    const int result = sapi_send_headers();
    sapi_flush();
    RETURN_LONG(result);
}

/* Adds "Name: value" to the array. Of several headers with one name, the last one stays. */
static void add_header(HashTable *to, const char *line, size_t len) {
    const char *colon = memchr(line, ':', len);
    if (!colon || colon == line) {
        return;
    }
    const char *value = colon + 1, *end = line + len;
    while (value < end && (*value == ' ' || *value == '\t')) {
        value++;
    }
    size_t name_len = (size_t)(colon - line);
    while (name_len > 0 && (line[name_len - 1] == ' ' || line[name_len - 1] == '\t')) {
        name_len--;
    }
    zval zv;
    ZVAL_STRINGL(&zv, value, (size_t)(end - value));
    zend_symtable_str_update(to, line, name_len, &zv);
}

ZEND_FUNCTION(frankenphp_response_headers) {
    ZEND_PARSE_PARAMETERS_NONE();
    array_init(return_value);
    for (zend_llist_element *e = SG(sapi_headers).headers.head; e; e = e->next) {
        const sapi_header_struct *header = (const sapi_header_struct *)e->data;
        add_header(Z_ARRVAL_P(return_value), header->header, header->header_len);
    }
}

/* ---- frankenphp_log ------------------------------------------------------------------------ */

static const char *level_name(zend_long level) {
    if (level >= FRANKENPHP_LOG_LEVEL_ERROR) {
        return "error";
    }
    if (level >= FRANKENPHP_LOG_LEVEL_WARN) {
        return "warn";
    }
    return level >= FRANKENPHP_LOG_LEVEL_INFO ? "info" : "debug";
}

/* Returns false if an object in the context has thrown an exception. */
static bool encode(smart_str *json, zval *context) {
    if (!context || zend_hash_num_elements(Z_ARRVAL_P(context)) == 0) {
        return true;
    }
    const int options = PHP_JSON_UNESCAPED_SLASHES | PHP_JSON_UNESCAPED_UNICODE |
                        PHP_JSON_INVALID_UTF8_SUBSTITUTE | PHP_JSON_PARTIAL_OUTPUT_ON_ERROR;
    php_json_encode_ex(json, context, options, CONTEXT_DEPTH_MAX);
    return !EG(exception);
}

ZEND_FUNCTION(frankenphp_log) {
    zend_string *message;
    zend_long level = FRANKENPHP_LOG_LEVEL_INFO;
    zval *context = NULL;
    ZEND_PARSE_PARAMETERS_START(1, 3)
    Z_PARAM_STR(message)
    Z_PARAM_OPTIONAL
    Z_PARAM_LONG(level)
    Z_PARAM_ARRAY(context)
    ZEND_PARSE_PARAMETERS_END();
    if (level < FRANKENPHP_LOG_LEVEL_INFO && !samovar_settings->log_debug) {
        return;
    }
    smart_str json = {0};
    if (encode(&json, context)) {
        const samovar_event event = {
            .level = level_name(level),
            .message = ZSTR_VAL(message),
            .message_len = ZSTR_LEN(message),
            .context = json.s ? ZSTR_VAL(json.s) : "",
            .context_len = json.s ? ZSTR_LEN(json.s) : 0,
            .request_id =
                samovar_current ? samovar_text(samovar_current, samovar_current->request_id) : "",
        };
        samovar_log_event(&event);
    }
    smart_str_free(&json);
}
