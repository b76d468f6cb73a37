/* Doubles of exit(): before PHP 8.4 it is an instruction. While it has a double, the instruction
 * calls a function, which hooks and originals handle as any other. */
#include "mocks/exits.h"
#include "mocks/calls.h"
#include "compat.h"
#include <zend_exceptions.h>

#if SAMOVAR_EXIT_IS_FUNCTION

void samovar_exits_startup(void) {}

zend_function *samovar_exit_function(const zend_internal_function *variadic) {
    (void)variadic;
    return NULL;
}

#else

static user_opcode_handler_t inner_exit;
/* Its name is empty until it is used. */
static zend_function exit_function;

/* The instruction itself. */
static ZEND_NAMED_FUNCTION(exit_for_good) {
    (void)return_value;
    if (ZEND_NUM_ARGS() > 0) {
        zval *status = ZEND_CALL_ARG(execute_data, 1);
        ZVAL_DEREF(status);
        if (Z_TYPE_P(status) == IS_LONG) {
            EG(exit_status) = Z_LVAL_P(status);
        } else {
            zend_print_zval(status, 0);
        }
    }
    if (!EG(exception)) {
        zend_throw_unwind_exit();
    }
}

static int on_exit_instruction(zend_execute_data *execute_data) {
    const zend_op *opline = EX(opline);
    zval status, returned;
    if (samovar_calls_doubled == 0 || !exit_function.common.function_name ||
        !samovar_double_find(&exit_function, NULL)) {
        return inner_exit ? inner_exit(execute_data) : ZEND_USER_OPCODE_DISPATCH;
    }
    ZVAL_NULL(&status);
    if (opline->op1_type == IS_CONST) {
        ZVAL_COPY(&status, RT_CONSTANT(opline, opline->op1));
    } else if (opline->op1_type != IS_UNUSED) {
        ZVAL_COPY_DEREF(&status, EX_VAR(opline->op1.var));
    }
    if (opline->op1_type & (IS_TMP_VAR | IS_VAR)) {
        zval_ptr_dtor(EX_VAR(opline->op1.var));
    }
    ZVAL_UNDEF(&returned);
    zend_call_known_function(&exit_function, NULL, NULL, &returned,
                             opline->op1_type == IS_UNUSED ? 0 : 1, &status, NULL);
    zval_ptr_dtor(&status);
    zval_ptr_dtor(&returned);
    if (!EG(exception)) {
        EX(opline) = opline + 1;
    }
    return ZEND_USER_OPCODE_CONTINUE;
}

void samovar_exits_startup(void) {
    inner_exit = zend_get_user_opcode_handler(ZEND_EXIT);
    zend_set_user_opcode_handler(ZEND_EXIT, on_exit_instruction);
}

zend_function *samovar_exit_function(const zend_internal_function *variadic) {
    if (!exit_function.common.function_name) {
        exit_function.internal_function = *variadic;
        exit_function.common.fn_flags = ZEND_ACC_PUBLIC | ZEND_ACC_VARIADIC;
        exit_function.common.function_name =
            zend_string_init_interned("exit", sizeof "exit" - 1, 1);
        exit_function.common.scope = NULL;
        exit_function.internal_function.handler = exit_for_good;
    }
    return &exit_function;
}

#endif
