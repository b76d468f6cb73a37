/* pinba_timer_start() and the other timer functions. Their results and warnings are those of the
 * extension. A timer lives until the end of the request, even if its resource is dropped. */
#include "functions/pinba.h"
#include "functions/arginfo/pinba_constants.h"
#include "functions/arginfo/prototypes.h"

static int resource_type;
static const char TYPE_NAME[] = "pinba timer";

/* ---- resources ----------------------------------------------------------------------------- */

static void free_timer(zend_resource *resource) {
    samovar_timer *t = resource->ptr;
    samovar_timer_unlist(t);
    zend_array_release(t->tags);
    zval_ptr_dtor(&t->data);
    efree(t);
}

void samovar_pinba_timers_startup(int module_number) {
    resource_type = zend_register_list_destructors_ex(free_timer, NULL, TYPE_NAME, module_number);
}

void samovar_pinba_drop(samovar_timer *t) {
    zend_resource *resource = t->resource;
    if (resource) {
        zend_list_close(resource);
        zend_list_delete(resource); /* Our reference, which has kept it alive. */
    }
}

static samovar_timer *timer_of(zval *resource) {
    return zend_fetch_resource(Z_RES_P(resource), TYPE_NAME, resource_type);
}

static bool is_over(void) {
    if (samovar_pinba.is_over) {
        php_error_docref(NULL, E_WARNING, "all timers have already been stopped");
    }
    return samovar_pinba.is_over;
}

/* Returns NULL after a warning with the reason. */
static HashTable *tags_of(const HashTable *from) {
    const char *problem;
    HashTable *tags = samovar_timer_tags(from, &problem);
    if (!tags) {
        php_error_docref(NULL, E_WARNING, "%s", problem);
    }
    return tags;
}

static bool may_be_made(const HashTable *tags, zend_long hits) {
    if (zend_hash_num_elements(tags) == 0) {
        php_error_docref(NULL, E_WARNING, "tags array cannot be empty");
        return false;
    }
    if (hits <= 0 || hits > TIMER_HITS_MAX) {
        php_error_docref(NULL, E_WARNING,
                         "hit_count must be greater than 0 (" ZEND_LONG_FMT " was passed)", hits);
        return false;
    }
    return true;
}

/* Creates a timer, with one reference in addition to the caller's. Returns NULL after a warning
 * with the reason. */
static samovar_timer *make(const HashTable *from, zval *data, zend_long hits, zval *to) {
    HashTable *tags = tags_of(from);
    if (!tags) {
        return NULL;
    }
    samovar_timer *t = ecalloc(1, sizeof *t);
    t->tags = tags;
    t->hits = (uint32_t)hits;
    ZVAL_UNDEF(&t->data);
    if (data) {
        ZVAL_COPY(&t->data, data);
    }
    t->resource = zend_register_resource(t, resource_type);
    GC_ADDREF(t->resource);
    samovar_timer_list(t);
    ZVAL_RES(to, t->resource);
    return t;
}

/* ---- start, add, stop, delete -------------------------------------------------------------- */

PHP_FUNCTION(pinba_timer_start) {
    HashTable *tags;
    zval *data = NULL;
    zend_long hits = 1;
    ZEND_PARSE_PARAMETERS_START(1, 3)
    Z_PARAM_ARRAY_HT(tags)
    Z_PARAM_OPTIONAL
    Z_PARAM_ARRAY_OR_NULL(data)
    Z_PARAM_LONG(hits)
    ZEND_PARSE_PARAMETERS_END();
    if (is_over() || !may_be_made(tags, hits)) {
        RETURN_FALSE;
    }
    if (data && zend_hash_num_elements(Z_ARRVAL_P(data)) == 0) {
        data = NULL;
    }
    samovar_timer *t = make(tags, data, hits, return_value);
    if (!t) {
        RETURN_FALSE;
    }
    samovar_timer_start(t);
}

PHP_FUNCTION(pinba_timer_add) {
    HashTable *tags;
    double seconds;
    zval *data = NULL;
    zend_long hits = 1;
    ZEND_PARSE_PARAMETERS_START(2, 4)
    Z_PARAM_ARRAY_HT(tags)
    Z_PARAM_DOUBLE(seconds)
    Z_PARAM_OPTIONAL
    Z_PARAM_ARRAY_OR_NULL(data)
    Z_PARAM_LONG(hits)
    ZEND_PARSE_PARAMETERS_END();
    if (is_over() || !may_be_made(tags, hits)) {
        RETURN_FALSE;
    }
    samovar_timer *t = make(tags, data, hits, return_value);
    if (!t) {
        RETURN_FALSE;
    }
    if (!(seconds >= 0)) {
        php_error_docref(NULL, E_WARNING, "negative time value passed (%f), changing it to 0",
                         seconds);
        seconds = 0;
    }
    t->sum.wall = (uint64_t)(MIN(seconds, TIMER_SECONDS_MAX) * 1e9);
}

PHP_FUNCTION(pinba_timer_stop) {
    zval *resource;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_RESOURCE(resource)
    ZEND_PARSE_PARAMETERS_END();
    samovar_timer *t = is_over() ? NULL : timer_of(resource);
    if (t && !samovar_timer_stop(t)) {
        php_error_docref(NULL, E_NOTICE, "timer is already stopped");
        t = NULL;
    }
    RETURN_BOOL(t);
}

PHP_FUNCTION(pinba_timer_delete) {
    zval *resource;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_RESOURCE(resource)
    ZEND_PARSE_PARAMETERS_END();
    samovar_timer *t = timer_of(resource);
    if (!t) {
        RETURN_FALSE;
    }
    samovar_timer_stop(t);
    if (t->is_listed) {
        samovar_timer_unlist(t);
        zend_list_delete(t->resource); /* The owner keeps its reference and may delete it again. */
    }
    RETURN_TRUE;
}

/* ---- data and tags ------------------------------------------------------------------------- */

PHP_FUNCTION(pinba_timer_data_merge) {
    zval *resource, *data;
    ZEND_PARSE_PARAMETERS_START(2, 2)
    Z_PARAM_RESOURCE(resource)
    Z_PARAM_ARRAY(data)
    ZEND_PARSE_PARAMETERS_END();
    samovar_timer *t = is_over() ? NULL : timer_of(resource);
    if (t && Z_TYPE(t->data) == IS_ARRAY) {
        SEPARATE_ARRAY(&t->data);
        zend_hash_merge(Z_ARRVAL(t->data), Z_ARRVAL_P(data), zval_add_ref, 1);
    } else if (t) {
        ZVAL_COPY(&t->data, data);
    }
    RETURN_BOOL(t);
}

PHP_FUNCTION(pinba_timer_data_replace) {
    zval *resource, *data;
    ZEND_PARSE_PARAMETERS_START(2, 2)
    Z_PARAM_RESOURCE(resource)
    Z_PARAM_ARRAY_OR_NULL(data)
    ZEND_PARSE_PARAMETERS_END();
    samovar_timer *t = is_over() ? NULL : timer_of(resource);
    if (t) {
        zval former = t->data;
        ZVAL_UNDEF(&t->data);
        if (data) {
            ZVAL_COPY(&t->data, data);
        }
        zval_ptr_dtor(&former);
    }
    RETURN_BOOL(t);
}

static void take_tags(samovar_timer *t, HashTable *tags) {
    zend_array_release(t->tags);
    t->tags = tags;
}

PHP_FUNCTION(pinba_timer_tags_merge) {
    zval *resource;
    HashTable *added;
    const char *problem;
    ZEND_PARSE_PARAMETERS_START(2, 2)
    Z_PARAM_RESOURCE(resource)
    Z_PARAM_ARRAY_HT(added)
    ZEND_PARSE_PARAMETERS_END();
    samovar_timer *t = is_over() ? NULL : timer_of(resource);
    HashTable *tags = t ? tags_of(added) : NULL;
    if (!tags) {
        RETURN_FALSE;
    }
    HashTable *all = zend_array_dup(t->tags);
    zend_hash_merge(all, tags, zval_add_ref, 1);
    take_tags(t, samovar_timer_tags(all, &problem));
    zend_array_release(all);
    zend_array_release(tags);
    RETURN_TRUE;
}

PHP_FUNCTION(pinba_timer_tags_replace) {
    zval *resource;
    HashTable *from;
    ZEND_PARSE_PARAMETERS_START(2, 2)
    Z_PARAM_RESOURCE(resource)
    Z_PARAM_ARRAY_HT(from)
    ZEND_PARSE_PARAMETERS_END();
    samovar_timer *t = is_over() ? NULL : timer_of(resource);
    if (!t) {
        RETURN_FALSE;
    }
    if (zend_hash_num_elements(from) == 0) {
        php_error_docref(NULL, E_WARNING, "tags array cannot be empty");
        RETURN_TRUE;
    }
    HashTable *tags = tags_of(from);
    if (!tags) {
        RETURN_FALSE;
    }
    take_tags(t, tags);
    RETURN_TRUE;
}

/* ---- data of timers ------------------------------------------------------------------------ */

static double seconds_of(uint64_t ns) {
    return (double)ns / 1e9;
}

void samovar_pinba_timer_info(const samovar_timer *t, zval *to) {
    const timer_times times = samovar_timer_read(t);
    zval tags, data;
    array_init(to);
    add_assoc_double(to, "value", seconds_of(times.wall));
    GC_ADDREF(t->tags);
    ZVAL_ARR(&tags, t->tags);
    add_assoc_zval(to, "tags", &tags);
    add_assoc_bool(to, "started", t->is_running);
    ZVAL_NULL(&data);
    if (Z_TYPE(t->data) == IS_ARRAY) {
        ZVAL_COPY(&data, &t->data);
    }
    add_assoc_zval(to, "data", &data);
    add_assoc_double(to, "ru_utime", seconds_of(times.user));
    add_assoc_double(to, "ru_stime", seconds_of(times.system));
}

PHP_FUNCTION(pinba_timer_get_info) {
    zval *resource;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_RESOURCE(resource)
    ZEND_PARSE_PARAMETERS_END();
    const samovar_timer *t = timer_of(resource);
    if (!t) {
        RETURN_THROWS();
    }
    samovar_pinba_timer_info(t, return_value);
}

PHP_FUNCTION(pinba_timers_stop) {
    ZEND_PARSE_PARAMETERS_NONE();
    for (samovar_timer *t = samovar_timers_first(); t; t = t->next) {
        if (t->resource) {
            samovar_timer_stop(t);
        }
    }
    RETURN_TRUE;
}

PHP_FUNCTION(pinba_timers_get) {
    zend_long flag = 0;
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_LONG(flag)
    ZEND_PARSE_PARAMETERS_END();
    array_init(return_value);
    for (const samovar_timer *t = samovar_timers_first(); t; t = t->next) {
        if (t->resource && !((flag & PINBA_ONLY_STOPPED_TIMERS) && t->is_running)) {
            GC_ADDREF(t->resource);
            add_next_index_resource(return_value, t->resource);
        }
    }
}
