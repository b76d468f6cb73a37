//! The numbers for the installed PHP's version match its headers.

use samovar_spy::LAYOUTS;
use samovar_testkit::php;
use std::process::Command;

const PROGRAM: &str = r#"
#include <php.h>
#include <SAPI.h>
#include <zend_generators.h>
#include <stdio.h>
#define AT(type, field) printf(#type "." #field " %zu\n", offsetof(type, field))
int main(void)
{
    AT(zend_executor_globals, vm_stack_top);
    AT(zend_executor_globals, current_execute_data);
    AT(zend_executor_globals, opline_before_exception);
    AT(zend_op_array, last_var);
    AT(zend_op_array, last);
    AT(zend_op_array, opcodes);
    AT(zend_op_array, vars);
    AT(zend_op_array, filename);
    AT(zend_op_array, line_start);
    printf("api %d\n", ZEND_MODULE_API_NO);
    _Static_assert(offsetof(zend_executor_globals, vm_stack_end)
        == offsetof(zend_executor_globals, vm_stack_top) + 8, "");
    _Static_assert(offsetof(zend_executor_globals, vm_stack)
        == offsetof(zend_executor_globals, vm_stack_top) + 16, "");
    _Static_assert(offsetof(zend_executor_globals, exception_op)
        == offsetof(zend_executor_globals, opline_before_exception) + 8, "");
    _Static_assert(offsetof(zend_execute_data, opline) == 0, "");
    _Static_assert(offsetof(zend_execute_data, func) == 24, "");
    _Static_assert(offsetof(zend_execute_data, This) == 32, "");
    _Static_assert(offsetof(zend_execute_data, prev_execute_data) == 48, "");
    _Static_assert(sizeof(zend_execute_data) == 80, "");
    _Static_assert(ZEND_CALL_TOP == 1 << 17 && IS_OBJECT == 8, "");
    _Static_assert(offsetof(zend_op, extended_value) == 20 && offsetof(zend_op, opcode) == 28, "");
#ifdef ZEND_FRAMELESS_ICALL_0
    _Static_assert(ZEND_FRAMELESS_ICALL_0 == 204 && ZEND_FRAMELESS_ICALL_3 == 207, "");
#else
    _Static_assert(ZEND_VM_LAST_OPCODE < 204, "");
#endif
    _Static_assert(offsetof(zend_op, lineno) == 24 && sizeof(zend_op) == 32, "");
    _Static_assert(offsetof(zend_op_array, fn_flags) == 4, "");
    _Static_assert(offsetof(zend_op_array, function_name) == 8, "");
    _Static_assert(offsetof(zend_op_array, scope) == 16, "");
    _Static_assert(offsetof(zend_op_array, line_start) + 4 <= 184, "");
    _Static_assert(ZEND_ACC_CALL_VIA_TRAMPOLINE == 1 << 18, "");
    _Static_assert(ZEND_INTERNAL_FUNCTION == 1 && ZEND_USER_FUNCTION == 2, "");
    _Static_assert(ZEND_EVAL_CODE == 4, "");
    _Static_assert(offsetof(zend_string, len) == 16 && offsetof(zend_string, val) == 24, "");
    _Static_assert(offsetof(zend_class_entry, name) == 8, "");
    _Static_assert(offsetof(zend_generator, execute_data) == 56, "");
    _Static_assert(offsetof(zend_executor_globals, symbol_table) == 304, "");
    _Static_assert(sizeof(zval) == 16 && offsetof(zval, u1) == 8 && offsetof(zval, u2) == 12, "");
    _Static_assert(IS_LONG == 4 && IS_DOUBLE == 5 && IS_STRING == 6 && IS_ARRAY == 7, "");
    _Static_assert(IS_RESOURCE == 9 && IS_REFERENCE == 10 && IS_INDIRECT == 12, "");
    _Static_assert(offsetof(zend_reference, val) == 8 && offsetof(zend_object, ce) == 16, "");
    _Static_assert(offsetof(zend_array, u) == 8 && offsetof(zend_array, nTableMask) == 12, "");
    _Static_assert(offsetof(zend_array, arData) == 16 && sizeof(zend_array) == 56, "");
    _Static_assert(offsetof(zend_array, nNumUsed) == 24, "");
    _Static_assert(offsetof(zend_array, nNumOfElements) == 28, "");
    _Static_assert(HASH_FLAG_PACKED == 1 << 2 && sizeof(Bucket) == 32, "");
    _Static_assert(offsetof(Bucket, h) == 16 && offsetof(Bucket, key) == 24, "");
    _Static_assert(offsetof(zend_generator, node)
        + offsetof(zend_generator_node, parent) == 152, "");
    _Static_assert(offsetof(sapi_globals_struct, request_info.request_method) == 8, "");
    _Static_assert(offsetof(sapi_globals_struct, request_info.request_uri) == 48, "");
    return 0;
}
"#;

#[test]
fn offsets_match_headers_of_installed_php() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let (source, program) = (folder.path().join("at.c"), folder.path().join("at"));
    std::fs::write(&source, PROGRAM).expect("written");
    let mut cc = Command::new("cc");
    cc.args(php::config("--includes").split_whitespace()).arg(&source).arg("-o").arg(&program);
    let compiled = cc.output().expect("a compiler");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let told = Command::new(&program).output().expect("it runs");
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let known = LAYOUTS.iter().find(|layout| layout.version == php::version());
    let known = known.expect("the installed version is known");
    assert_eq!(told, known.to_string());
}
