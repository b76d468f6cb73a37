/* What each request below a checkpoint begins with: the file of the setting checkpoint_resume, and
 * the callable that Samovar\checkpoint() was given. They read again what the boot has read.
 *
 * When one of them returns false, the image no longer fits. Then this process ends what was booted,
 * in silence, runs the request as a whole script, and leaves for one that boots anew. So that the
 * script finds the request's body, what is read of it before that is decided is kept (body.c). */
#include "model/resume.h"
#include "leave.h"
#include "model/collect.h"
#include "model/script.h"
#include "persistent.h"
#include "sapi/body.h"
#include "sapi/sapi.h"
#include <ext/standard/basic_functions.h>
#include <unistd.h>

static zend_fcall_info resume;
static zend_fcall_info_cache resume_cache;
/* The request at hand: no PHP of it has run that could not run again. */
SAMOVAR_OF_REQUEST static bool deciding;
/* The request that is to run whole; NULL: the image fits. */
SAMOVAR_OF_REQUEST static const samovar_head *stale;

static bool resumes(void) {
    return samovar_settings->checkpoint_resume[0] || ZEND_FCI_INITIALIZED(resume);
}

void samovar_resume_with(zend_fcall_info *info, zend_fcall_info_cache *cache) {
    resume = *info;
    resume_cache = *cache;
    Z_TRY_ADDREF(resume.function_name);
    if (resume_cache.object) {
        GC_ADDREF(resume_cache.object);
    }
}

/* ---- resume -------------------------------------------------------------------------------- */

/* As spl_autoload(): an exit() or an exception of the file's is the request's. */
static void include_file(zval *returned) {
    zend_file_handle file;
    zend_stream_init_filename(&file, samovar_settings->checkpoint_resume);
    zend_op_array *code = zend_compile_file(&file, ZEND_REQUIRE);
    zend_destroy_file_handle(&file);
    if (code) {
        zend_execute(code, returned);
        zend_destroy_static_vars(code);
        destroy_op_array(code);
        efree_size(code, sizeof *code);
    }
}

static bool is_refused(zval *returned) {
    const bool refused = !EG(exception) && Z_TYPE_P(returned) == IS_FALSE;
    zval_ptr_dtor(returned);
    ZVAL_UNDEF(returned);
    return refused;
}

static bool finds_stale(void) {
    zval returned;
    ZVAL_UNDEF(&returned);
    if (samovar_settings->checkpoint_resume[0]) {
        include_file(&returned);
        if (is_refused(&returned)) {
            return true;
        }
    }
    if (ZEND_FCI_INITIALIZED(resume) && !EG(exception)) {
        resume.retval = &returned;
        zend_call_function(&resume, &resume_cache);
        return is_refused(&returned);
    }
    return false;
}

/* A half answer cannot be taken back, and nobody reads that of a warm-up request. */
static bool can_start_over(void) {
    if (samovar_warming) {
        return false;
    }
    if (SG(headers_sent) || samovar_answered) {
        samovar_note("PHP Samovar: the resume hook returned false after it had sent output: the "
                     "request goes on in a stale image");
        return false;
    }
    return true;
}

void samovar_resume_begin(void) {
    deciding = resumes();
    if (deciding) {
        samovar_body_keep();
    }
}

void samovar_resume(void) {
    if (!deciding) {
        return;
    }
    const bool starts_over = finds_stale() && can_start_over();
    deciding = false;
    if (!starts_over) {
        samovar_body_forget();
        return;
    }
    if (!samovar_body_rewind()) {
        samovar_note("PHP Samovar: no memory to keep a request's body for its second reading");
        samovar_leave_for(LEAVE_STALE);
    }
    stale = samovar_current;
    samovar_current = NULL; /* What the boot still says is nobody's. */
    zend_bailout();
}

/* ---- the whole script ---------------------------------------------------------------------- */

/* Shutdown functions and destructors of the boot are no request's. */
static void silence_boot(void) {
    if (BG(user_shutdown_function_names)) {
        php_free_shutdown_functions();
        BG(user_shutdown_function_names) = NULL;
    }
    zend_objects_store_mark_destructed(&EG(objects_store));
    php_output_discard_all();
    SG(headers_sent) = 1;
    SG(request_info).no_headers = 1;
}

bool samovar_is_stale(void) {
    return stale != NULL;
}

void samovar_end_stale(void) {
    if (!stale) {
        return;
    }
    const samovar_head *head = stale;
    stale = NULL;
    samovar_persistent = NULL; /* It never rolls back again. */
    samovar_below_checkpoint = false;
    samovar_place = SAMOVAR_RUNS_SCRIPTS;
    samovar_collect_end();
    zend_try {
        silence_boot();
    }
    zend_end_try();
    php_request_shutdown(NULL);
    samovar_drop_early_output();
    samovar_forget_request_info();
    samovar_php_run(head);
    samovar_leave_for(LEAVE_STALE);
}
