/* boot, run: builds a tree of loads from the files that PHP compiles and the classes that it
 * looks for.
 *
 * PHP reports that a file is compiled, but not the end of the file's own code: the VM continues
 * in it without a call. So after a file was compiled, `zend_execute_ex` is replaced until its
 * next call, which is the file's. The VM then makes that one call through our function, and no
 * other. */
#define _GNU_SOURCE
#include "loads/loads.h"
#include "sapi/sapi.h"
#include <zend_compile.h>
#include <zend_execute.h>
#include <pthread.h>
#include <time.h>

typedef zend_op_array *compiler(zend_file_handle *file, int type);
typedef zend_class_entry *autoloader(zend_string *name, zend_string *lc_name);

static compiler *compile_any;   /* PHP's, or one installed before ours */
static compiler *compile_known; /* opcache's */
static autoloader *autoload_any;
static void (*execute_any)(zend_execute_data *call);

static void run_file(zend_execute_data *call);

/* The table for records; NULL: nothing is recorded. */
SAMOVAR_OF_REQUEST static load_table *loads;
SAMOVAR_OF_REQUEST static uint32_t open_load;
/* The compiler has run: the file was not in opcache's memory. */
SAMOVAR_OF_REQUEST static bool has_compiled;
/* The file that was compiled last, if its code has not started. */
SAMOVAR_OF_REQUEST static const zend_op_array *pending;
SAMOVAR_OF_REQUEST static uint32_t pending_load;
/* Number of tables begun so far. A load that is open in one of them has no end in another. */
SAMOVAR_OF_REQUEST static uint32_t epoch;
SAMOVAR_OF_REQUEST static uint32_t classes_before;
/* Number of the template of this boot; 0: there is no reader. */
static uint64_t boot;
/* Table of the request that runs a whole script; NULL: it is not recorded. */
static load_table *script_table;
/* Number of requests of this process that ran whole scripts. */
static uint64_t scripts;

/* ---- the table ----------------------------------------------------------------------------- */

static int64_t read_clock(clockid_t which) {
    struct timespec t;
    clock_gettime(which, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static load_cost now(void) {
    return (load_cost){
        .wall = read_clock(CLOCK_MONOTONIC),
        .cpu = loads->reads_cpu ? read_clock(CLOCK_THREAD_CPUTIME_ID) : 0,
        .mem = (int64_t)zend_memory_usage(false),
    };
}

static load_cost since(const load_cost *then) {
    const load_cost it = now();
    return (load_cost){it.wall - then->wall, it.cpu - then->cpu, it.mem - then->mem};
}

static uint32_t put_text(load_table *t, const char *text, size_t len, uint32_t *kept) {
    if (len > LOADS_NAME_BYTES) {
        text += len - LOADS_NAME_BYTES;
        len = LOADS_NAME_BYTES;
    }
    if (len > t->text_room - t->text_len) {
        len = 0;
    }
    const size_t at = t->text_len;
    memcpy(t->text + at, text, len);
    t->text_len += len;
    *kept = (uint32_t)len;
    return (uint32_t)at;
}

/* Stores the position of the innermost call of application code. */
static void put_place(load_table *t, load *l) {
    const zend_execute_data *call = EG(current_execute_data);
    for (int looks = 0; call && looks < LOADS_LOOK_MAX; looks++, call = call->prev_execute_data) {
        if (call->func && ZEND_USER_CODE(call->func->type) && call->opline &&
            call->func->op_array.filename) {
            const zend_string *file = call->func->op_array.filename;
            l->place = put_text(t, ZSTR_VAL(file), ZSTR_LEN(file), &l->place_len);
            l->line = call->opline->lineno;
            return;
        }
    }
}

static uint32_t add(uint8_t kind, const char *name, size_t len) {
    load_table *t = loads;
    if (t->loads == t->loads_max) {
        t->lost++;
        return LOADS_NONE;
    }
    const uint32_t at = t->loads++;
    load *l = &t->load[at];
    *l = (load){.parent = open_load, .kind = kind};
    l->name = put_text(t, name, len, &l->name_len);
    put_place(t, l);
    l->begun = now();
    open_load = at;
    return at;
}

static void end(uint32_t at) {
    load_table *t = loads;
    if (at >= t->loads || t->load[at].has_ended) {
        return;
    }
    load *l = &t->load[at];
    l->all = since(&l->begun);
    l->has_ended = true;
    open_load = l->parent;
}

static load_table *make_room(uint32_t loads_max) {
    const size_t text = (size_t)loads_max * LOADS_TEXT_BYTES;
    const size_t report = (size_t)loads_max * LOADS_REPORT_BYTES;
    load_table *t = samovar_shared_memory(sizeof *t + loads_max * sizeof(load) + text + report);
    if (t) {
        t->loads_max = loads_max;
        t->text_room = text;
        t->report_room = report;
        t->load = (load *)(t + 1);
        t->text = (char *)(t->load + loads_max);
        t->report = t->text + text;
    }
    return t;
}

static void give_back(load_table *t) {
    samovar_shared_memory_end(t, (size_t)(t->report + t->report_room - (char *)t));
}

static void begin(load_table *t) {
    t->loads = t->lost = 0;
    t->text_len = t->report_len = 0;
    t->boot = boot;
    loads = t;
    epoch++;
    open_load = LOADS_NONE;
    add(LOAD_ROOT, "", 0);
}

/* Stops recording. */
static void stop(void) {
    loads = NULL;
    epoch++;
    pending = NULL;
    if (zend_execute_ex == run_file) {
        zend_execute_ex = execute_any;
    }
}

static void end_all(load_table *t) {
    for (uint32_t at = t->loads; at-- > 0;) {
        end(at);
    }
    stop();
}

uint32_t samovar_load_begin(uint8_t kind, const char *name, size_t len) {
    return loads ? add(kind, name, len) : LOADS_NONE;
}

void samovar_load_end(uint32_t at) {
    if (loads && at != LOADS_NONE) {
        end(at);
    }
}

/* ---- hooks of PHP -------------------------------------------------------------------------- */

/* Called by opcache, only for files that it does not have. */
static zend_op_array *compile_noted(zend_file_handle *file, int type) {
    has_compiled = true;
    return compile_any(file, type);
}

static void run_file(zend_execute_data *call) {
    zend_execute_ex = execute_any;
    const bool is_file = loads && call->func && &call->func->op_array == pending;
    const uint32_t at = pending_load, of = epoch;
    pending = NULL;
    if (!is_file) {
        execute_any(call);
        return;
    }
    load *l = &loads->load[at];
    l->has_ended = false;
    open_load = at;
    execute_any(call);
    /* After a checkpoint inside the file, there is another table, or none. */
    if (loads && of == epoch) {
        end(at);
    }
}

/* The next call of the VM will be the file's own code. */
static void expect(const zend_op_array *code, uint32_t at) {
    pending = code;
    pending_load = at;
    if (zend_execute_ex != run_file) {
        execute_any = zend_execute_ex;
        zend_execute_ex = run_file;
    }
}

static bool is_once(void) {
    const zend_execute_data *call = EG(current_execute_data);
    return call && call->func && ZEND_USER_CODE(call->func->type) && call->opline &&
           call->opline->opcode == ZEND_INCLUDE_OR_EVAL &&
           (call->opline->extended_value & (ZEND_INCLUDE_ONCE | ZEND_REQUIRE_ONCE)) != 0;
}

static ZEND_COLD zend_op_array *compile_and_note(zend_file_handle *file, int type) {
    const zend_string *name = file->opened_path ? file->opened_path : file->filename;
    const uint32_t at = add(LOAD_FILE, name ? ZSTR_VAL(name) : "", name ? ZSTR_LEN(name) : 0);
    const uint32_t of = epoch;
    const bool once = is_once();
    has_compiled = false;
    zend_op_array *code = compile_known(file, type);
    if (!loads || of != epoch || at == LOADS_NONE) {
        return code;
    }
    load *l = &loads->load[at];
    l->was_compiled = has_compiled;
    l->is_once = once;
    l->compiling = since(&l->begun);
    end(at); /* If the code of the file does nothing, this is the end. */
    if (code) {
        if (code->filename) {
            const zend_string *path = code->filename;
            l->name = put_text(loads, ZSTR_VAL(path), ZSTR_LEN(path), &l->name_len);
        }
        expect(code, at);
    }
    return code;
}

static zend_op_array *compile(zend_file_handle *file, int type) {
    if (EXPECTED(!loads)) {
        return compile_known(file, type);
    }
    return compile_and_note(file, type);
}

static zend_class_entry *autoload(zend_string *name, zend_string *lc_name) {
    if (EXPECTED(!loads)) {
        return autoload_any(name, lc_name);
    }
    const uint32_t at = add(LOAD_CLASS, ZSTR_VAL(name), ZSTR_LEN(name)), of = epoch;
    zend_class_entry *found = autoload_any(name, lc_name);
    if (loads && of == epoch && at != LOADS_NONE) {
        end(at);
    }
    return found;
}

void samovar_loads_minit(void) {
    compile_any = zend_compile_file;
    zend_compile_file = compile_noted;
}

/* Called in a forked process, which records nothing. */
static void forget(void) {
    stop();
}

void samovar_loads_startup(void) {
    pthread_atfork(NULL, NULL, forget);
    compile_known = zend_compile_file;
    zend_compile_file = compile;
    autoload_any = zend_autoload;
    if (autoload_any) {
        zend_autoload = autoload;
    }
}

/* ---- a boot -------------------------------------------------------------------------------- */

void samovar_loads_boot(void) {
    boot = samovar_loads_wanted();
    load_table *t = boot ? make_room(LOADS_OF_BOOT) : NULL;
    if (t) {
        t->reads_cpu = true;
        begin(t);
    }
}

void samovar_loads_booted(void) {
    load_table *t = loads;
    samovar_boot_over();
    if (t && t == script_table) {
        stop(); /* A whole script has become a boot: no report describes both. */
    } else if (t) {
        end_all(t);
        samovar_loads_write(t, NULL, 0, 0);
        samovar_loads_send(t->report, t->report_len);
        give_back(t);
    }
}

/* ---- requests ------------------------------------------------------------------------------ */

load_table *samovar_loads_room(void) {
    return boot ? make_room(LOADS_OF_REQUEST) : NULL;
}

void samovar_loads_begin(loads_state *state, load_table *table) {
    state->table = table;
}

/* Returns true for the first requests, which find cold caches, and then for a few. */
static bool is_due(uint64_t number) {
    return number < LOADS_FIRST || (number & (LOADS_EVERY - 1)) == 0;
}

void samovar_loads_open(loads_state *state, uint64_t number) {
    if (UNEXPECTED(is_due(number)) && state->table) {
        begin(state->table);
        classes_before = zend_hash_num_elements(EG(class_table));
    }
}

void samovar_loads_close(loads_state *state, uint32_t tell) {
    load_table *t = loads;
    if (!t || t != state->table) {
        return;
    }
    end_all(t);
    state->unchanged++;
    if (t->loads > 1 || state->unchanged >= tell) {
        const uint32_t classes = zend_hash_num_elements(EG(class_table)) - classes_before;
        samovar_loads_write(t, samovar_current, state->unchanged, classes);
        state->unchanged = 0;
    }
}

void samovar_loads_tell(loads_state *state) {
    load_table *t = state->table;
    if (t && t->report_len) {
        samovar_loads_send(t->report, t->report_len);
        t->report_len = 0;
    }
}

/* ---- requests that run whole scripts ------------------------------------------------------- */

static bool is_script_due(uint64_t number) {
    const uint64_t every = samovar_settings->loads_every;
    return every && (number < LOADS_FIRST_SCRIPTS || number % every == 0);
}

void samovar_loads_script_open(void) {
    if (EXPECTED(!is_script_due(scripts++))) {
        return;
    }
    boot = samovar_loads_wanted();
    script_table = boot ? make_room(LOADS_OF_SCRIPT) : NULL;
    if (script_table) {
        script_table->is_script = true;
        begin(script_table);
    }
}

void samovar_loads_script_close(const samovar_head *head) {
    load_table *t = script_table;
    if (EXPECTED(!t)) {
        return;
    }
    if (t == loads && head) {
        end_all(t);
        samovar_loads_write(t, head, 1, 0);
    } else if (t == loads) {
        stop();
    }
}

/* The memory is given back, because the next recorded request may be far away. */
void samovar_loads_script_tell(void) {
    load_table *t = script_table;
    if (EXPECTED(!t)) {
        return;
    }
    script_table = NULL;
    if (t->report_len) {
        samovar_loads_send(t->report, t->report_len);
    }
    give_back(t);
}
