/* Doubles of `new`: ZEND_NEW begins the call of an internal function instead of that of the
 * constructor. The arguments follow as usual. The function calls the double and replaces the
 * object, which until then is an empty one: the engine frees it if an argument throws. */
#include "mocks/makers.h"
#include "mocks/calls.h"
#include "mocks/running.h"
#include <stddef.h>
#include <zend_exceptions.h>

static user_opcode_handler_t inner_new;

/* The frame has no object: the field holds the place of the result in the frame of the caller. */
static ZEND_NAMED_FUNCTION(make) {
    samovar_double *d = (samovar_double *)((char *)EX(func) - offsetof(samovar_double, maker));
    zval *place = (zval *)((char *)EX(prev_execute_data) + (uintptr_t)Z_PTR(EX(This)));
    zval made;
    (void)return_value;
    Z_PTR(EX(This)) = NULL;
    samovar_double_run(d, execute_data, &made);
    if (EG(exception)) {
        return;
    }
    if (Z_TYPE(made) != IS_OBJECT) {
        zend_type_error("The double of `%s` must return an object, %s returned\n"
                        "hint: return an object of the class, or one that behaves like it",
                        ZSTR_VAL(d->target), zend_zval_type_name(&made));
        zval_ptr_dtor(&made);
        return;
    }
    zval_ptr_dtor(place);
    ZVAL_COPY_VALUE(place, &made);
}

/* Returns the class of `new`; NULL: there is none, or it is not loaded and so has no double. */
static const zend_class_entry *class_of(const zend_execute_data *execute_data,
                                        const zend_op *opline) {
    if (opline->op1_type == IS_CONST) {
        const zval *name = RT_CONSTANT(opline, opline->op1);
        return zend_lookup_class_ex(Z_STR_P(name), Z_STR_P(name + 1), ZEND_FETCH_CLASS_NO_AUTOLOAD);
    }
    if (opline->op1_type == IS_UNUSED) {
        return zend_fetch_class(NULL, opline->op1.num);
    }
    return Z_CE_P(EX_VAR(opline->op1.var));
}

static int on_new(zend_execute_data *execute_data) {
    const zend_op *opline = EX(opline);
    if (EXPECTED(samovar_news_doubled == 0)) {
        return inner_new ? inner_new(execute_data) : ZEND_USER_OPCODE_DISPATCH;
    }
    zval *result = EX_VAR(opline->result.var);
    const zend_class_entry *ce = class_of(execute_data, opline);
    if (EG(exception)) {
        ZVAL_UNDEF(result);
        return ZEND_USER_OPCODE_CONTINUE;
    }
    samovar_double *d = ce ? samovar_double_find_new(ce) : NULL;
    if (!d) {
        return inner_new ? inner_new(execute_data) : ZEND_USER_OPCODE_DISPATCH;
    }
    object_init(result);
    zend_execute_data *callee = zend_vm_stack_push_call_frame(
        ZEND_CALL_FUNCTION, (zend_function *)&d->maker, opline->extended_value,
        (void *)(uintptr_t)opline->result.var);
    callee->prev_execute_data = EX(call);
    EX(call) = callee;
    EX(opline) = opline + 1;
    return ZEND_USER_OPCODE_CONTINUE;
}

void samovar_makers_startup(void) {
    inner_new = zend_get_user_opcode_handler(ZEND_NEW);
    zend_set_user_opcode_handler(ZEND_NEW, on_new);
}

void samovar_maker_prepare(samovar_double *d, const zend_internal_function *variadic) {
    d->maker = *variadic;
    d->maker.fn_flags = ZEND_ACC_PUBLIC | ZEND_ACC_VARIADIC;
    d->maker.function_name = d->target;
    d->maker.scope = NULL;
    d->maker.prototype = NULL;
    d->maker.handler = make;
}

void samovar_make_original(const samovar_double *d, zval *made, uint32_t count, zval *arguments,
                           HashTable *named) {
    zval ignored;
    if (object_init_ex(made, d->ce) != SUCCESS) {
        ZVAL_UNDEF(made);
        return;
    }
    if (!d->ce->constructor) {
        return;
    }
    ZVAL_UNDEF(&ignored);
    zend_object *object = Z_OBJ_P(made);
    samovar_original_call(d->ce->constructor, object, d->ce, &ignored, count, arguments, named);
    zval_ptr_dtor(&ignored);
    if (EG(exception)) {
        zend_object_store_ctor_failed(object);
        zval_ptr_dtor(made);
        ZVAL_UNDEF(made);
    }
}
