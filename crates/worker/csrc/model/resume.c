/* Start of each request below a checkpoint: the file of the setting checkpoint_resume, and the
 * callable that was passed to Samovar\checkpoint(). They read data again that the boot has read.
 *
 * When one of them returns false, the image no longer fits. Then this process ends the booted
 * application silently, runs the request as a whole script (dispatch.c), and leaves for a process
 * that boots again. The script must find the request's body. So the part of it that is read before
 * the decision is kept (body.c). */
#include "model/resume.h"
#include "leave.h"
#include "memory/persistent.h"
#include "model/collect.h"
#include "sapi/body.h"
#include "sapi/sapi.h"
#include <ext/standard/basic_functions.h>
#include <unistd.h>

static zend_fcall_info resume;
static zend_fcall_info_cache resume_cache;
/* True while the current request has run no PHP code that could not run again. */
SAMOVAR_OF_REQUEST static bool deciding;
/* The request that must run as a whole script; NULL: the image fits. */
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

/* Like spl_autoload(): an exit() or an exception of the file belongs to the request. */
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

/* A partial response cannot be taken back, and the response of a warm-up request has no reader. */
static bool can_start_over(void) {
    if (samovar_warming) {
        return false;
    }
    if (SG(headers_sent) || samovar_responded) {
        samovar_note("PHP Samovar: the resume hook returned false after it had sent output: the "
                     "request continues in a stale image");
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
        samovar_note("PHP Samovar: out of memory: cannot store a request's body for its second "
                     "reading");
        samovar_leave_for(LEAVE_STALE);
    }
    stale = samovar_current;
    samovar_current = NULL; /* Further output of the boot belongs to no request. */
    zend_bailout();
}

/* ---- the end of a stale image -------------------------------------------------------------- */

/* Shutdown functions and destructors of the boot belong to no request. */
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

const samovar_head *samovar_end_stale(void) {
    if (!stale) {
        return NULL;
    }
    const samovar_head *head = stale;
    stale = NULL;
    samovar_persistent_end(); /* It never rolls back again. */
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
    return head;
}
