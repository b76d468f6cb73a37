/* `samovar test`: a command line that boots the test framework once. It is forked for each unit of
 * tests in the middle of its script, the driver (crates/testing/src/driver.php). */
#include "boundary.h"
#include "model/console.h"
#include "rollback/reseed.h"
#include <php.h>

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_next_order, 0, 0, IS_STRING, 1)
ZEND_END_ARG_INFO()

/* samovar_test_order(): ?string. Returns the file with the next order: one to load classes in this
 * process, or one to run tests in the child that the call has forked. NULL: there are no more. */
static ZEND_FUNCTION(samovar_test_order) {
    ZEND_PARSE_PARAMETERS_NONE();
    bool is_child = false;
    size_t len = 0;
    const char *file = samovar_next_test_order(&len, &is_child);
    if (is_child) {
        samovar_reseed_prepare();
        samovar_reseed();
    }
    if (file) {
        RETVAL_STRINGL(file, len);
    }
}

static const zend_function_entry functions[] = {ZEND_FE(samovar_test_order, arginfo_next_order)
                                                    ZEND_FE_END};

/* Test frameworks start the tests that need a process of their own with PHP_BINARY. */
static void set_binary(const char *binary) {
    zend_constant *constant = zend_hash_str_find_ptr(EG(zend_constants), ZEND_STRL("PHP_BINARY"));
    if (constant) {
        ZVAL_NEW_STR(&constant->value, zend_string_init(binary, strlen(binary), 1));
    }
}

/* Within a request, because PHP interns the name. */
static void register_order(void) {
    zend_register_functions(NULL, functions, NULL, MODULE_PERSISTENT);
}

int samovar_php_tests(const char *driver, const char *script, const char *binary) {
    char *words[] = {(char *)script, NULL};
    samovar_hide_functions_of_servers();
    set_binary(binary);
    return samovar_console_run(1, words, driver, register_order);
}
