/* Samovar\consume(): runs batches of jobs in the checkpoint model.
 *
 * A batch is a request of the server itself. Its body contains the jobs, its response their
 * results. Code above consume() is booted once; below, each batch ends with a rollback. */
#include "boundary.h"
#include "functions/jobs.h"
#include "insight/errors.h"
#include "model/checkpoint.h"
#include "request.h"
#include "sapi/sapi.h"
#include "tasks/task.h"
#include <php_output.h>
#include <zend_exceptions.h>
#include "functions/arginfo/prototypes.h"

static zend_string *read_batch(void) {
    php_stream *input = php_stream_open_wrapper("php://input", "rb", REPORT_ERRORS, NULL);
    if (!input) {
        return NULL;
    }
    zend_string *body = php_stream_copy_to_mem(input, PHP_STREAM_COPY_ALL, 0);
    php_stream_close(input);
    return body;
}

/* Calls the handler with the jobs. Returns the exception that left it, or NULL. */
static zend_object *call(zend_fcall_info *info, zend_fcall_info_cache *cache, zval *jobs) {
    zval returned;
    ZVAL_UNDEF(&returned);
    info->retval = &returned;
    zend_fcall_info_args(info, jobs);
    zend_call_function(info, cache);
    zend_fcall_info_args_clear(info, true);
    zval_ptr_dtor(&returned);
    zend_object *thrown = EG(exception);
    if (thrown && !zend_is_unwind_exit(thrown) && !zend_is_graceful_exit(thrown)) {
        GC_ADDREF(thrown);
        zend_clear_exception();
        return thrown;
    }
    return NULL;
}

static void run_batch(zend_fcall_info *info, zend_fcall_info_cache *cache) {
    zval jobs;
    zend_string *batch = read_batch();
    const bool is_batch = batch && samovar_jobs_of(batch, &jobs);
    if (batch) {
        zend_string_release(batch);
    }
    if (!is_batch) {
        zend_throw_error(NULL, "Samovar\\consume() cannot read the batch");
        return;
    }
    /* The response is for the server, so output of the handler would be in its way. This handler
     * keeps none of it: a job may write any amount. */
    php_output_start_devnull();
    zend_object *thrown = call(info, cache, &jobs);
    if (EG(exception)) { /* exit(): the batch has no results */
        zval_ptr_dtor(&jobs);
        return;
    }
    php_output_discard_all();
    if (thrown) {
        samovar_errors_report(thrown);
        samovar_request_failed();
    }
    zend_string *results = samovar_jobs_results(Z_ARRVAL(jobs), thrown);
    php_output_write(ZSTR_VAL(results), ZSTR_LEN(results));
    zend_string_release(results);
    if (thrown) {
        OBJ_RELEASE(thrown);
    }
    zval_ptr_dtor(&jobs);
}

ZEND_FUNCTION(Samovar_consume) {
    zend_fcall_info info;
    zend_fcall_info_cache cache;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_FUNC(info, cache)
    ZEND_PARSE_PARAMETERS_END();
    if (samovar_place == SAMOVAR_RUNS_CONSOLE) {
        zend_throw_error(NULL, "Samovar\\consume() runs jobs: there are none on the console");
        RETURN_THROWS();
    }
    if (samovar_tasks_in_flight()) {
        zend_throw_error(NULL, "Samovar\\consume() with tasks in flight: await them first");
        RETURN_THROWS();
    }
    if (samovar_below_checkpoint || samovar_serving) {
        zend_throw_error(NULL, "Samovar\\consume() is called below a checkpoint or in a handler: "
                               "call it once, instead of checkpoint() or serve()");
        RETURN_THROWS();
    }
    samovar_checkpoint();
    /* A client that requests the handler's script must not pass jobs of its own. */
    if (!samovar_current || !(samovar_current->flags & SAMOVAR_JOBS)) {
        zend_throw_error(NULL, "Samovar\\consume() runs jobs of a [[queue]] only");
        RETURN_THROWS();
    }
    run_batch(&info, &cache);
}
