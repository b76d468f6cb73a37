/* activate: $_SERVER and other data made from the request head.
 *
 * Names and values are those of nginx's fastcgi_params with php-fpm. Keys are interned once at
 * startup, so that filling the array allocates only the values. */
#include "sapi/variables.h"
#include "outside/request_reads.h"
#include "sapi/run_state.h"
#include <SAPI.h>
#include <php_variables.h>
#include <ext/standard/basic_functions.h>

extern char **environ;

#define FIELDS(X)                                                                                  \
    X(query, "QUERY_STRING")                                                                       \
    X(method, "REQUEST_METHOD")                                                                    \
    X(script_name, "SCRIPT_NAME")                                                                  \
    X(target, "REQUEST_URI")                                                                       \
    X(document_uri, "DOCUMENT_URI")                                                                \
    X(document_root, "DOCUMENT_ROOT")                                                              \
    X(protocol, "SERVER_PROTOCOL")                                                                 \
    X(remote_addr, "REMOTE_ADDR")                                                                  \
    X(server_addr, "SERVER_ADDR")                                                                  \
    X(server_name, "SERVER_NAME")                                                                  \
    X(script_filename, "SCRIPT_FILENAME")                                                          \
    X(path_info, "PATH_INFO")                                                                      \
    X(request_id, "REQUEST_ID")

static const struct {
    const char *name;
    size_t offset;
} fields[] = {
#define FIELD(member, name) {name, offsetof(samovar_head, member)},
    FIELDS(FIELD)
#undef FIELD
};
enum {
#define NUMBER(member, name) FIELD_##member,
    FIELDS(NUMBER)
#undef NUMBER
        FIELD_COUNT
};

static zend_string *field_keys[FIELD_COUNT];
/* Values of most requests, if they are known before the first request. */
static zend_string *usual_values[FIELD_COUNT];
static zend_string *key_content_type, *key_content_length, *key_scheme, *key_https, *key_gateway,
    *key_software, *key_remote_port, *key_server_port, *key_redirect_status, *key_self, *key_user;
static zend_string *key_frankenphp, *value_one;
static zend_string *value_http, *value_https, *value_on, *value_gateway, *value_software,
    *value_redirect_status;

/* Headers that nearly every request has: their keys are interned. Sorted by length. */
static const struct {
    const char *header, *key;
} known[] = {
    {"dnt", "HTTP_DNT"},
    {"host", "HTTP_HOST"},
    {"accept", "HTTP_ACCEPT"},
    {"cookie", "HTTP_COOKIE"},
    {"origin", "HTTP_ORIGIN"},
    {"referer", "HTTP_REFERER"},
    {"priority", "HTTP_PRIORITY"},
    {"user-agent", "HTTP_USER_AGENT"},
    {"connection", "HTTP_CONNECTION"},
    {"content-type", "HTTP_CONTENT_TYPE"},
    {"x-request-id", "HTTP_X_REQUEST_ID"},
    {"cache-control", "HTTP_CACHE_CONTROL"},
    {"authorization", "HTTP_AUTHORIZATION"},
    {"if-none-match", "HTTP_IF_NONE_MATCH"},
    {"content-length", "HTTP_CONTENT_LENGTH"},
    {"sec-fetch-dest", "HTTP_SEC_FETCH_DEST"},
    {"sec-fetch-mode", "HTTP_SEC_FETCH_MODE"},
    {"sec-fetch-site", "HTTP_SEC_FETCH_SITE"},
    {"sec-fetch-user", "HTTP_SEC_FETCH_USER"},
    {"accept-language", "HTTP_ACCEPT_LANGUAGE"},
    {"accept-encoding", "HTTP_ACCEPT_ENCODING"},
    {"x-forwarded-for", "HTTP_X_FORWARDED_FOR"},
    {"x-requested-with", "HTTP_X_REQUESTED_WITH"},
    {"x-forwarded-proto", "HTTP_X_FORWARDED_PROTO"},
    {"if-modified-since", "HTTP_IF_MODIFIED_SINCE"},
    {"upgrade-insecure-requests", "HTTP_UPGRADE_INSECURE_REQUESTS"},
};
enum { KNOWN_COUNT = sizeof known / sizeof known[0], KNOWN_LEN_MAX = 32, KEY_MAX = 256 };
static zend_string *known_keys[KNOWN_COUNT];
/* Index of the first header of each length. They end where longer ones begin. */
static uint8_t known_from[KNOWN_LEN_MAX + 2];

/* The process's environment, converted to PHP strings once. Bounded by the system's ARG_MAX. */
typedef struct {
    zend_string *key, *value;
} variable;
static variable *environment;
static size_t environment_count;

/* PHP's own php_import_environment_variables(). */
static void (*import_process_environment)(zval *array);
static void import_environment(zval *array);

static zend_string *interned(const char *text) {
    return zend_string_init_interned(text, strlen(text), 1);
}

static void startup_environment(void) {
    size_t count = 0;
    while (environ[count]) {
        count++;
    }
    environment = pemalloc(sizeof(variable) * (count + 1), 1);
    for (size_t i = 0; i < count; i++) {
        const char *equals = strchr(environ[i], '=');
        size_t len = equals ? (size_t)(equals - environ[i]) : 0;
        /* HTTP_*: an environment variable must not look like a header of the request. SAMOVAR_*:
         * settings of the server are not for the application. */
        if (len == 0 || strncmp(environ[i], "HTTP_", 5) == 0 ||
            strncmp(environ[i], "SAMOVAR_", 8) == 0) {
            continue;
        }
        environment[environment_count++] =
            (variable){zend_string_init_interned(environ[i], len, 1), interned(equals + 1)};
    }
}

static void put(HashTable *to, zend_string *key, zend_string *value) {
    zval zv;
    ZVAL_STR(&zv, value);
    zend_hash_update(to, key, &zv);
}

static void put_text(HashTable *to, zend_string *key, const char *text, size_t len) {
    zval zv;
    ZVAL_STRINGL_FAST(&zv, text, len);
    zend_hash_update(to, key, &zv);
}

static void put_number(HashTable *to, zend_string *key, int64_t number) {
    zval zv;
    ZVAL_STR(&zv, zend_long_to_str(number));
    zend_hash_update(to, key, &zv);
}

/* "x-forwarded-for" → "HTTP_X_FORWARDED_FOR". The front lets only letters, digits and hyphens
 * through. */
static size_t header_key(char *key, const char *name, size_t len) {
    memcpy(key, "HTTP_", 5);
    len = MIN(len, KEY_MAX - 6);
    for (size_t i = 0; i < len; i++) {
        char c = name[i];
        key[5 + i] = c == '-' ? '_' : (char)toupper((unsigned char)c);
    }
    key[5 + len] = 0;
    return 5 + len;
}

static zend_string *known_key(const char *name, size_t len) {
    if (len > KNOWN_LEN_MAX) {
        return NULL;
    }
    for (size_t i = known_from[len]; i < known_from[len + 1]; i++) {
        if (memcmp(known[i].header, name, len) == 0) {
            return known_keys[i];
        }
    }
    return NULL;
}

static void put_headers(const samovar_head *r, HashTable *to) {
    const samovar_header *header = samovar_headers(r);
    for (uint32_t i = 0; i < r->headers; i++, header++) {
        const char *name = samovar_text(r, header->name);
        zend_string *key = known_key(name, header->name.len);
        if (key) {
            put_text(to, key, samovar_text(r, header->value), header->value.len);
            continue;
        }
        char text[KEY_MAX];
        size_t len = header_key(text, name, header->name.len);
        zval zv;
        ZVAL_STRINGL_FAST(&zv, samovar_text(r, header->value), header->value.len);
        zend_hash_str_update(to, text, len, &zv);
    }
}

const char *samovar_request_variable(const char *name, size_t name_len, size_t *len) {
    const samovar_head *r = samovar_current;
    if (!r) {
        return NULL;
    }
    const samovar_header *variable = samovar_headers(r) + r->headers;
    for (uint32_t i = 0; i < r->variables; i++, variable++) {
        if (variable->name.len == name_len &&
            memcmp(samovar_text(r, variable->name), name, name_len) == 0) {
            *len = variable->value.len;
            return samovar_text(r, variable->value);
        }
    }
    return NULL;
}

/* Adds variables that only some listeners provide, under their names in $_SERVER: those of a
 * client's certificate. */
static void put_variables(const samovar_head *r, HashTable *to) {
    const samovar_header *variable = samovar_headers(r) + r->headers;
    for (uint32_t i = 0; i < r->variables; i++, variable++) {
        zval zv;
        ZVAL_STRINGL_FAST(&zv, samovar_text(r, variable->value), variable->value.len);
        zend_hash_str_update(to, samovar_text(r, variable->name), variable->name.len, &zv);
    }
}

static void put_self(const samovar_head *r, HashTable *to) {
    zend_string *self = zend_string_concat2(samovar_text(r, r->script_name), r->script_name.len,
                                            samovar_text(r, r->path_info), r->path_info.len);
    put(to, key_self, self);
}

/* Adds the variables that php-fpm gets as FastCGI parameters. */
static void put_request(const samovar_head *r, HashTable *to) {
    if (r->flags & SAMOVAR_FASTCGI) {
        put_variables(r, to);
        put_headers(r, to);
        return;
    }
    for (int i = 0; i < FIELD_COUNT; i++) {
        const samovar_str *s = (const samovar_str *)((const char *)r + fields[i].offset);
        put_text(to, field_keys[i], samovar_text(r, *s), s->len);
    }
    const char *content_type = samovar_optional(r, r->content_type);
    put_text(to, key_content_type, content_type ? content_type : "", r->content_type.len);
    if (r->content_length >= 0) {
        put_number(to, key_content_length, r->content_length);
    } else {
        put(to, key_content_length, ZSTR_EMPTY_ALLOC());
    }
    put(to, key_scheme, r->flags & SAMOVAR_HTTPS ? value_https : value_http);
    if (r->flags & SAMOVAR_HTTPS) {
        put(to, key_https, value_on);
    }
    put(to, key_gateway, value_gateway);
    put(to, key_software, value_software);
    put_number(to, key_remote_port, r->remote_port);
    put_number(to, key_server_port, r->server_port);
    put(to, key_redirect_status, value_redirect_status);
    const char *user = SG(request_info).auth_user;
    put_text(to, key_user, user ? user : "", user ? strlen(user) : 0);
    put_headers(r, to);
    put_variables(r, to);
}

/* Returns the application's script name, below its root. */
static const char *app_script_name(void) {
    const size_t root = strlen(samovar_settings->root);
    const char *script = samovar_settings->app_script;
    return root && strncmp(script, samovar_settings->root, root) == 0 ? script + root : script;
}

/* Used at boot: adds the variables that are the same for every request. */
static void put_boot(HashTable *to) {
    const size_t root = strlen(samovar_settings->root);
    const char *script = samovar_settings->app_script, *name = app_script_name();
    put_text(to, field_keys[FIELD_script_filename], script, strlen(script));
    put_text(to, field_keys[FIELD_script_name], name, strlen(name));
    put_text(to, field_keys[FIELD_document_root], samovar_settings->root, root);
    put_text(to, key_self, name, strlen(name));
}

/* Scripts other than the front controller are not workers. */
static bool is_frankenphp_worker(const samovar_head *r) {
    return samovar_settings->frankenphp_worker && (!r || r->flags & SAMOVAR_APP);
}

const zend_string *samovar_environment_value(const zend_string *key) {
    for (size_t i = 0; i < environment_count; i++) {
        if (zend_string_equals(environment[i].key, (zend_string *)key)) {
            return environment[i].value;
        }
    }
    return NULL;
}

static void put_environment(HashTable *to) {
    for (size_t i = 0; i < environment_count; i++) {
        put(to, environment[i].key, environment[i].value);
    }
}

/* ---- the shape of $_SERVER ----------------------------------------------------------------- */

/* The part of $_SERVER that all requests have, in PHP's order, made once. A request copies its
 * memory, and sets values in place. All of its keys and values are interned. */
typedef struct {
    HashTable array;
    uint32_t fields[FIELD_COUNT];
    uint32_t content_type, content_length, remote_port, server_port, user;
} shape;
enum { LATER = 6 /* PHP_SELF, and entries added by PHP */ };

uint32_t samovar_server_entries_added;

/* Indexed by three flags: HTTPS, worker of FrankenPHP, many headers. */
static shape shapes[2][2][2];

static uint32_t place_of(const HashTable *array, const zend_string *key) {
    const zval *value = zend_hash_find(array, (zend_string *)key);
    return (uint32_t)((const Bucket *)value - array->arData);
}

static void make_shape(shape *s, bool is_https, bool is_worker, uint32_t room) {
    static samovar_head nothing;
    nothing.flags = is_https ? SAMOVAR_HTTPS : 0;
    nothing.content_length = -1;
    zend_hash_init(&s->array, room, NULL, NULL, 1);
    zend_hash_real_init_mixed(&s->array);
    put_environment(&s->array);
    if (is_worker) {
        put(&s->array, key_frankenphp, value_one);
    }
    put_request(&nothing, &s->array);
    for (int i = 0; i < FIELD_COUNT; i++) {
        s->fields[i] = place_of(&s->array, field_keys[i]);
    }
    s->content_type = place_of(&s->array, key_content_type);
    s->content_length = place_of(&s->array, key_content_length);
    s->remote_port = place_of(&s->array, key_remote_port);
    s->server_port = place_of(&s->array, key_server_port);
    s->user = place_of(&s->array, key_user);
}

static void startup_shapes(void) {
    const uint32_t room = (uint32_t)environment_count + FIELD_COUNT + 12;
    for (int https = 0; https < 2; https++) {
        for (int worker = 0; worker <= samovar_settings->frankenphp_worker; worker++) {
            shape *pair = shapes[https][worker];
            make_shape(&pair[0], https, worker, room);
            make_shape(&pair[1], https, worker, pair[0].array.nTableSize * 2);
        }
    }
}

static const shape *shape_for(const samovar_head *r, uint32_t further) {
    const shape *pair = shapes[!!(r->flags & SAMOVAR_HTTPS)][is_frankenphp_worker(r)];
    const HashTable *small = &pair[0].array;
    return &pair[small->nNumUsed + further + LATER > small->nTableSize];
}

/* Copies into an array that is still empty. */
static void copy_shape(HashTable *to, const HashTable *from) {
    char *data = emalloc(HT_SIZE(from));
    memcpy(data, HT_GET_DATA_ADDR(from), HT_USED_SIZE(from));
    to->nTableSize = from->nTableSize;
    to->nTableMask = from->nTableMask;
    to->nNumUsed = from->nNumUsed;
    to->nNumOfElements = from->nNumOfElements;
    HT_SET_DATA_ADDR(to, data);
    HT_FLAGS(to) = HT_FLAGS(from);
}

static void set_text(HashTable *in, uint32_t place, const char *text, size_t len) {
    ZVAL_STRINGL_FAST(&in->arData[place].val, text, len);
}

static void set_number(HashTable *in, uint32_t place, int64_t number) {
    ZVAL_STR(&in->arData[place].val, zend_long_to_str(number));
}

static void set_field(const samovar_head *r, HashTable *in, const shape *s, int field) {
    const samovar_str *value = (const samovar_str *)((const char *)r + fields[field].offset);
    const char *text = samovar_text(r, *value);
    zend_string *usual = usual_values[field];
    if (usual && ZSTR_LEN(usual) == value->len && memcmp(ZSTR_VAL(usual), text, value->len) == 0) {
        ZVAL_INTERNED_STR(&in->arData[s->fields[field]].val, usual);
    } else {
        set_text(in, s->fields[field], text, value->len);
    }
}

static void put_shaped(const samovar_head *r, HashTable *to) {
    const shape *s = shape_for(r, r->headers + r->variables + samovar_server_entries_added);
    copy_shape(to, &s->array);
    for (int i = 0; i < FIELD_COUNT; i++) {
        set_field(r, to, s, i);
    }
    const char *content_type = samovar_optional(r, r->content_type);
    set_text(to, s->content_type, content_type ? content_type : "", r->content_type.len);
    if (r->content_length >= 0) {
        set_number(to, s->content_length, r->content_length);
    }
    set_number(to, s->remote_port, r->remote_port);
    set_number(to, s->server_port, r->server_port);
    const char *user = SG(request_info).auth_user;
    if (user) {
        set_text(to, s->user, user, strlen(user));
    }
    put_headers(r, to);
    put_variables(r, to);
}

/* `array` is new. */
void samovar_register_variables(zval *array) {
    HashTable *to = Z_ARRVAL_P(array);
    const samovar_head *r = samovar_current;
    if (r && !(r->flags & SAMOVAR_FASTCGI) && HT_FLAGS(to) & HASH_FLAG_UNINITIALIZED) {
        put_shaped(r, to);
        put_self(r, to);
        return;
    }
    uint32_t further = r ? r->headers + r->variables : 0;
    zend_hash_extend(to, (uint32_t)environment_count + FIELD_COUNT + 14 + further, 0);
    put_environment(to);
    if (is_frankenphp_worker(r)) {
        put(to, key_frankenphp, value_one);
    }
    if (!r) {
        put_boot(to);
        return;
    }
    put_request(r, to);
    put_self(r, to);
}

/* ---- the start ----------------------------------------------------------------------------- */

static void startup_usual_values(void) {
    usual_values[FIELD_method] = interned("GET");
    usual_values[FIELD_protocol] = interned("HTTP/1.1");
    usual_values[FIELD_script_filename] = interned(samovar_settings->app_script);
    usual_values[FIELD_document_root] = interned(samovar_settings->root);
    usual_values[FIELD_script_name] = interned(app_script_name());
    usual_values[FIELD_document_uri] = usual_values[FIELD_script_name];
}

void samovar_variables_startup(void) {
    for (int i = 0; i < FIELD_COUNT; i++) {
        field_keys[i] = interned(fields[i].name);
    }
    for (int i = 0; i < KNOWN_COUNT; i++) {
        known_keys[i] = interned(known[i].key);
        for (size_t len = strlen(known[i].header) + 1; len < sizeof known_from; len++) {
            known_from[len] = (uint8_t)(i + 1);
        }
    }
    key_content_type = interned("CONTENT_TYPE");
    key_content_length = interned("CONTENT_LENGTH");
    key_scheme = interned("REQUEST_SCHEME");
    key_https = interned("HTTPS");
    key_gateway = interned("GATEWAY_INTERFACE");
    key_software = interned("SERVER_SOFTWARE");
    key_remote_port = interned("REMOTE_PORT");
    key_server_port = interned("SERVER_PORT");
    key_redirect_status = interned("REDIRECT_STATUS");
    key_self = interned("PHP_SELF");
    key_user = interned("REMOTE_USER");
    key_frankenphp = interned("FRANKENPHP_WORKER");
    value_one = interned("1");
    value_http = interned("http");
    value_https = interned("https");
    value_on = interned("on");
    value_gateway = interned("CGI/1.1");
    value_software = interned(samovar_settings->server_software);
    value_redirect_status = interned("200");
    startup_environment();
    startup_usual_values();
    startup_shapes();
    import_process_environment = php_import_environment_variables;
    php_import_environment_variables = import_environment;
}

/* ---- $_ENV and getenv() ---------------------------------------------------------------------- */

/* $_ENV, and getenv() without a name: php-fpm adds the FastCGI parameters to the process's own
 * variables. */
static void import_environment(zval *array) {
    import_process_environment(array);
    if (samovar_current) {
        put_request(samovar_current, Z_ARRVAL_P(array));
    }
}

static bool is_name(const char *name, size_t len, const zend_string *key) {
    return ZSTR_LEN(key) == len && memcmp(ZSTR_VAL(key), name, len) == 0;
}

static char *variable_named(const samovar_head *r, const char *name, size_t len) {
    const samovar_header *variable = samovar_headers(r) + r->headers;
    for (uint32_t i = 0; i < r->variables; i++, variable++) {
        if (variable->name.len == len && memcmp(samovar_text(r, variable->name), name, len) == 0) {
            return (char *)samovar_text(r, variable->value);
        }
    }
    return NULL;
}

static char *header_named(const samovar_head *r, const char *name, size_t len) {
    const samovar_header *header = samovar_headers(r);
    for (uint32_t i = 0; i < r->headers; i++, header++) {
        char key[KEY_MAX];
        size_t key_len = header_key(key, samovar_text(r, header->name), header->name.len);
        if (key_len == len && memcmp(key, name, len) == 0) {
            return (char *)samovar_text(r, header->value);
        }
    }
    return NULL;
}

/* Returns the number as text. Valid until the next call: PHP copies it at once. */
static char *digits_of(int64_t number) {
    static char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)number);
    return digits;
}

/* getenv('REMOTE_ADDR') and similar calls: php-fpm searches the FastCGI parameters first. These
 * are the variables of samovar_register_variables(), except PHP_SELF. */
char *samovar_getenv(const char *name, size_t len) {
    const samovar_head *r = samovar_current;
    if (is_frankenphp_worker(r) && is_name(name, len, key_frankenphp)) {
        return ZSTR_VAL(value_one);
    }
    if (!r) {
        samovar_request_reads_getenv(name, len);
        return NULL;
    }
    const bool is_told = r->flags & SAMOVAR_FASTCGI;
    for (int i = 0; i < FIELD_COUNT && !is_told; i++) {
        if (is_name(name, len, field_keys[i])) {
            const samovar_str *s = (const samovar_str *)((const char *)r + fields[i].offset);
            return (char *)samovar_text(r, *s);
        }
    }
    if (len > 5 && memcmp(name, "HTTP_", 5) == 0) {
        char *header = header_named(r, name, len);
        if (header) {
            return header;
        }
    }
    char *further = variable_named(r, name, len);
    if (further || is_told) {
        return further;
    }
    const bool is_https = r->flags & SAMOVAR_HTTPS;
    if (is_name(name, len, key_https)) {
        return is_https ? ZSTR_VAL(value_on) : NULL;
    }
    const struct {
        const zend_string *key;
        const char *value;
    } others[] = {
        {key_content_type, samovar_optional(r, r->content_type)},
        {key_scheme, ZSTR_VAL(is_https ? value_https : value_http)},
        {key_gateway, ZSTR_VAL(value_gateway)},
        {key_software, ZSTR_VAL(value_software)},
        {key_redirect_status, ZSTR_VAL(value_redirect_status)},
        {key_user, SG(request_info).auth_user},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (is_name(name, len, others[i].key)) {
            return (char *)(others[i].value ? others[i].value : "");
        }
    }
    if (is_name(name, len, key_content_length)) {
        return r->content_length < 0 ? (char *)"" : digits_of(r->content_length);
    }
    if (is_name(name, len, key_remote_port)) {
        return digits_of(r->remote_port);
    }
    return is_name(name, len, key_server_port) ? digits_of(r->server_port) : NULL;
}

/* apache_request_headers(): names, empty entries and order (the last one first) as in php-fpm,
 * which reads its list of FastCGI parameters backwards. */
void samovar_request_headers(zval *array) {
    const samovar_head *r = samovar_current;
    if (!r) {
        return;
    }
    const samovar_header *header = samovar_headers(r) + r->headers;
    while (header-- > samovar_headers(r)) {
        char key[KEY_MAX];
        size_t len = header_key(key, samovar_text(r, header->name), header->name.len);
        sapi_add_request_header(key, (unsigned)len, (char *)samovar_text(r, header->value),
                                header->value.len, array);
    }
    char number[24] = "";
    int digits = 0;
    if (r->content_length >= 0) {
        digits = snprintf(number, sizeof number, "%lld", (long long)r->content_length);
    }
    sapi_add_request_header("CONTENT_LENGTH", 14, number, (unsigned)digits, array);
    const char *content_type = samovar_optional(r, r->content_type);
    sapi_add_request_header("CONTENT_TYPE", 12, (char *)(content_type ? content_type : ""),
                            r->content_type.len, array);
}

/* The filter extension keeps its own copy of $_SERVER, filled through input_filter. It is filled
 * when a script first uses it (functions/wrapped.c), not for each request. */
void samovar_fill_filter_input(void) {
    zval server, published;
    array_init(&server);
    samovar_register_variables(&server);
    /* The filter also writes to the published $_SERVER, which scripts may share. So it gets
     * another one meanwhile. */
    ZVAL_COPY_VALUE(&published, &PG(http_globals)[TRACK_VARS_SERVER]);
    array_init(&PG(http_globals)[TRACK_VARS_SERVER]);
    zend_string *key;
    zval *value;
    ZEND_HASH_FOREACH_STR_KEY_VAL(Z_ARRVAL(server), key, value) {
        char *text = Z_STRVAL_P(value);
        size_t len;
        sapi_module.input_filter(PARSE_SERVER, ZSTR_VAL(key), &text, Z_STRLEN_P(value), &len);
    }
    ZEND_HASH_FOREACH_END();
    zval_ptr_dtor(&PG(http_globals)[TRACK_VARS_SERVER]);
    ZVAL_COPY_VALUE(&PG(http_globals)[TRACK_VARS_SERVER], &published);
    zval_ptr_dtor(&server);
}
