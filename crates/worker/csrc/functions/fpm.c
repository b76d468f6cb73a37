/* Functions of php-fpm that applications call. */
#include "sapi/sapi.h"
#include "sapi/variables.h"
#include "functions/arginfo/prototypes.h"

PHP_FUNCTION(fastcgi_finish_request) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_BOOL(samovar_finish_response());
}

PHP_FUNCTION(apache_request_headers) {
    ZEND_PARSE_PARAMETERS_NONE();
    array_init(return_value);
    samovar_request_headers(return_value);
}
