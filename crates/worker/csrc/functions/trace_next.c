/* Samovar\trace_next(): sets a header that the front turns into a cookie
 * (front/src/request/trace_selection.rs), because the front knows which clients may use it. No
 * client sees the header. */
#include "boundary.h"
#include "sapi/sapi.h"
#include "functions/arginfo/prototypes.h"

#define ASKS "X-Samovar-Trace-Next: 1"

ZEND_FUNCTION(Samovar_trace_next) {
    ZEND_PARSE_PARAMETERS_NONE();
    if (!samovar_settings->may_trace || !samovar_current || SG(headers_sent)) {
        RETURN_FALSE;
    }
    sapi_header_line line = {.line = ASKS, .line_len = sizeof(ASKS) - 1};
    RETURN_BOOL(sapi_header_op(SAPI_HEADER_REPLACE, &line) == SUCCESS);
}
