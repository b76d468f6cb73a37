/* HTTP requests of curl and of streams.
 *
 * A request of a curl_multi handle begins when its handle is added. It ends with the message of its
 * end, when the handle is removed, or when the multi handle is closed. Its time is that of curl. */
#include "insight/hooked.h"
#include <ext/standard/file.h>
#include <string.h>

enum {
    PARALLEL_MAX = 256, /* requests that run at the same time; further ones are not recorded */
    NS_IN_US = 1000
};

/* A request of a curl_multi handle. */
typedef struct {
    const zend_object *handle, *multi; /* compared only */
    statement_call call;
    statement_place at;
} parallel_request;

static zend_function *curl_getinfo;
static zend_long effective_url, effective_method, total_time;
/* Entries of other requests are free. */
static parallel_request parallel[PARALLEL_MAX];
static uint32_t parallel_used;

static void curl_info(zval *handle, zend_long which, zval *value) {
    zval arguments[2];
    ZVAL_COPY_VALUE(&arguments[0], handle);
    ZVAL_LONG(&arguments[1], which);
    zend_call_known_function(curl_getinfo, NULL, NULL, value, 2, arguments, NULL);
}

static uint32_t text_of_curl(zval *handle) {
    zval url, method;
    ZVAL_UNDEF(&method);
    curl_info(handle, effective_url, &url);
    if (effective_method) {
        curl_info(handle, effective_method, &method);
    }
    const char *name = Z_TYPE(method) == IS_STRING ? Z_STRVAL(method) : NULL;
    const uint32_t text = Z_TYPE(url) == IS_STRING
                              ? samovar_statements_http(name, Z_STRVAL(url), Z_STRLEN(url))
                              : NO_TEXT;
    zval_ptr_dtor(&url);
    zval_ptr_dtor(&method);
    return text;
}

static bool is_curl(const zval *handle) {
    return handle && Z_TYPE_P(handle) == IS_OBJECT && curl_getinfo &&
           Z_OBJCE_P(handle)->type == ZEND_INTERNAL_CLASS &&
           zend_string_equals_literal(Z_OBJCE_P(handle)->name, "CurlHandle");
}

/* The method is known when the request was made. */
static uint32_t describe_curl_before(const hook *h, zend_execute_data *execute_data, bool *skips) {
    *skips = !is_curl(samovar_argument(execute_data, 0));
    return *skips ? NO_TEXT : samovar_statements_plain(STATEMENT_HTTP, "HTTP", 4);
}

static uint64_t finish_curl(const hook *h, zend_execute_data *execute_data, zval *return_value,
                            statement_call *call) {
    if (!EG(exception)) {
        samovar_statement_rename(call, STATEMENT_HTTP,
                                 text_of_curl(samovar_argument(execute_data, 0)), NULL);
    }
    return 0;
}

static bool is_running(const parallel_request *one) {
    return one->handle && one->call.request == samovar_statements->request;
}

static uint64_t ns_of_curl(zval *handle) {
    zval us;
    ZVAL_UNDEF(&us);
    curl_info(handle, total_time, &us);
    const uint64_t ns =
        Z_TYPE(us) == IS_LONG && Z_LVAL(us) > 0 ? (uint64_t)Z_LVAL(us) * NS_IN_US : 0;
    zval_ptr_dtor(&us);
    return ns;
}

static void end_parallel(parallel_request *one, zval *handle) {
    one->handle = NULL;
    samovar_statement_rename(&one->call, STATEMENT_HTTP, text_of_curl(handle), &one->at);
    samovar_statement_end_after(&one->call, ns_of_curl(handle));
}

static void end_handle(zval *handle) {
    if (!is_curl(handle)) {
        return;
    }
    for (uint32_t i = 0; i < parallel_used; i++) {
        if (parallel[i].handle == Z_OBJ_P(handle) && is_running(&parallel[i])) {
            end_parallel(&parallel[i], handle);
            return;
        }
    }
}

/* curl_multi_add_handle */
static uint64_t finish_add(const hook *h, zend_execute_data *execute_data, zval *return_value,
                           statement_call *call) {
    const zval *multi = samovar_argument(execute_data, 0),
               *handle = samovar_argument(execute_data, 1);
    if (!is_curl(handle) || Z_TYPE_P(return_value) != IS_LONG || Z_LVAL_P(return_value) != 0) {
        return 0;
    }
    uint32_t place = parallel_used;
    for (uint32_t i = 0; i < parallel_used; i++) {
        if (parallel[i].handle == Z_OBJ_P(handle) && is_running(&parallel[i])) {
            /* Its multi handle was destroyed, and this is a new object at the same address. */
            samovar_statement_end(&parallel[i].call, 1, 0);
            parallel[i].handle = NULL;
        }
        place = place == parallel_used && !is_running(&parallel[i]) ? i : place;
    }
    if (place == PARALLEL_MAX) {
        return 0;
    }
    parallel_request *one = &parallel[place];
    parallel_used = MAX(parallel_used, place + 1);
    one->handle = Z_OBJ_P(handle);
    one->multi = Z_OBJ_P(multi);
    one->at = samovar_statement_here();
    samovar_statement_begin(&one->call, STATEMENT_HTTP,
                            samovar_statements_plain(STATEMENT_HTTP, "HTTP", 4), false);
    return 0;
}

/* curl_multi_info_read */
static uint64_t finish_message(const hook *h, zend_execute_data *execute_data, zval *return_value,
                               statement_call *call) {
    if (Z_TYPE_P(return_value) == IS_ARRAY) {
        end_handle(zend_hash_str_find(Z_ARRVAL_P(return_value), ZEND_STRL("handle")));
    }
    return 0;
}

/* curl_multi_remove_handle */
static uint64_t finish_remove(const hook *h, zend_execute_data *execute_data, zval *return_value,
                              statement_call *call) {
    end_handle(samovar_argument(execute_data, 1));
    return 0;
}

/* curl_multi_close: later its handles may be gone. */
static uint32_t describe_close(const hook *h, zend_execute_data *execute_data, bool *skips) {
    const zend_object *multi = samovar_subject(execute_data);
    *skips = true;
    for (uint32_t i = 0; multi && i < parallel_used; i++) {
        if (parallel[i].multi == multi && is_running(&parallel[i])) {
            zval handle;
            ZVAL_OBJ(&handle, (zend_object *)parallel[i].handle);
            end_parallel(&parallel[i], &handle);
        }
    }
    return NO_TEXT;
}

static bool is_http(const zval *url) {
    return url && Z_TYPE_P(url) == IS_STRING && Z_STRLEN_P(url) > sizeof "http://" &&
           (strncasecmp(Z_STRVAL_P(url), "http://", 7) == 0 ||
            strncasecmp(Z_STRVAL_P(url), "https://", 8) == 0);
}

/* file_get_contents, fopen: `len` is the number of the argument with the context. */
static uint32_t describe_stream(const hook *h, zend_execute_data *execute_data, bool *skips) {
    const zval *url = samovar_argument(execute_data, 0);
    *skips = !is_http(url);
    if (*skips) {
        return NO_TEXT;
    }
    const char *name = "GET";
    zval *context = samovar_argument(execute_data, h->len - 1u);
    if (context && Z_TYPE_P(context) == IS_RESOURCE &&
        Z_RES_P(context)->type == php_le_stream_context()) {
        const zval *method = php_stream_context_get_option(Z_RES_P(context)->ptr, "http", "method");
        name = method && Z_TYPE_P(method) == IS_STRING ? Z_STRVAL_P(method) : name;
    }
    return samovar_statements_http(name, Z_STRVAL_P(url), Z_STRLEN_P(url));
}

static zend_long constant(const char *name) {
    const zval *value = zend_get_constant_str(name, strlen(name));
    return value && Z_TYPE_P(value) == IS_LONG ? Z_LVAL_P(value) : 0;
}

void samovar_hook_http(void) {
    curl_getinfo = samovar_find_function(CG(function_table), "curl_getinfo");
    effective_url = constant("CURLINFO_EFFECTIVE_URL");
    effective_method = constant("CURLINFO_EFFECTIVE_METHOD");
    total_time = constant("CURLINFO_TOTAL_TIME_T");
    const hook_row rows[] = {
        {"curl_exec",
         NULL,
         {.describe = describe_curl_before, .finish = finish_curl, .kind = STATEMENT_HTTP}},
        {"curl_multi_add_handle",
         NULL,
         {.describe = samovar_describe_nothing, .finish = finish_add}},
        {"curl_multi_info_read",
         NULL,
         {.describe = samovar_describe_nothing, .finish = finish_message}},
        {"curl_multi_remove_handle",
         NULL,
         {.describe = samovar_describe_nothing, .finish = finish_remove}},
        {"curl_multi_close", NULL, {.describe = describe_close}},
        {"file_get_contents",
         NULL,
         {.describe = describe_stream, .kind = STATEMENT_HTTP, .len = 3}},
        {"fopen", NULL, {.describe = describe_stream, .kind = STATEMENT_HTTP, .len = 4}},
    };
    samovar_hook_all(NULL, rows, COUNT(rows));
}
