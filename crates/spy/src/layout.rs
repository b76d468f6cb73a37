//! Offsets of the fields that are read, by PHP version: into the structs of php-src's headers, for
//! 64-bit builds.
//!
//! The numbers are `offsetof` of `zend_executor_globals` (`Zend/zend_globals.h`), `zend_op_array`,
//! `zend_op`, `zend_execute_data` (`Zend/zend_compile.h`), `zend_generator`
//! (`Zend/zend_generators.h`) and `sapi_globals_struct` (`main/SAPI.h`). A thread-safe build has
//! the same structs; only the address of the globals differs. `tests/layout.rs` compares the entry
//! of the installed version with its headers.

/// The offsets that differ between versions.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    /// `ZEND_MODULE_API_NO`, which identifies a build.
    pub api: u32,
    /// Version name.
    pub version: &'static str,
    /// `zend_executor_globals`: `vm_stack_top`, followed by `vm_stack_end` and `vm_stack`.
    pub(crate) vm_stack_top: usize,
    /// `zend_executor_globals.current_execute_data`.
    pub(crate) current_execute_data: usize,
    /// `zend_executor_globals.opline_before_exception`; `exception_op` (three `zend_op`) is next.
    pub(crate) opline_before_exception: usize,
    /// `zend_op_array.last`: the number of opcodes.
    pub(crate) last: usize,
    /// `zend_op_array.opcodes`.
    pub(crate) opcodes: usize,
    /// `zend_op_array.filename`.
    pub(crate) filename: usize,
    /// `zend_op_array.line_start`.
    pub(crate) line_start: usize,
}

/// API number of PHP 8.2, whose packed arrays have no keys.
const PACKED_ZVALS_SINCE: u32 = 20_220_829;

/// One entry per known version.
pub static LAYOUTS: [Layout; 5] = [
    Layout {
        api: 20_210_902,
        version: "8.1",
        vm_stack_top: 456,
        current_execute_data: 488,
        opline_before_exception: 880,
        last: 68,
        opcodes: 72,
        filename: 144,
        line_start: 152,
    },
    Layout {
        api: 20_220_829,
        version: "8.2",
        vm_stack_top: 456,
        current_execute_data: 488,
        opline_before_exception: 880,
        last: 80,
        opcodes: 88,
        filename: 152,
        line_start: 160,
    },
    Layout {
        api: 20_230_831,
        version: "8.3",
        vm_stack_top: 456,
        current_execute_data: 488,
        opline_before_exception: 880,
        last: 76,
        opcodes: 80,
        filename: 144,
        line_start: 152,
    },
    Layout {
        api: 20_240_924,
        version: "8.4",
        vm_stack_top: 456,
        current_execute_data: 488,
        opline_before_exception: 952,
        last: 96,
        opcodes: 104,
        filename: 168,
        line_start: 176,
    },
    Layout {
        api: 20_250_925,
        version: "8.5",
        vm_stack_top: 480,
        current_execute_data: 512,
        opline_before_exception: 976,
        last: 96,
        opcodes: 104,
        filename: 168,
        line_start: 176,
    },
];

impl Layout {
    /// `zend_op_array.last_var`: the number of compiled variables.
    pub(crate) fn last_var(&self) -> usize {
        self.last - 4
    }

    /// Size of an entry of a packed array: a `Bucket` before PHP 8.2, then a `zval`.
    pub(crate) fn packed_bytes(&self) -> u64 {
        let is_bucket = self.api < PACKED_ZVALS_SINCE;
        (if is_bucket { array::BUCKET_BYTES } else { zval::BYTES }) as u64
    }

    /// `zend_op_array.vars`: the names of compiled variables.
    pub(crate) fn vars(&self) -> usize {
        self.filename - 40
    }
}

impl std::fmt::Display for Layout {
    /// The numbers with their names in the headers, for the comparison.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (name, offset) in [
            ("zend_executor_globals.vm_stack_top", self.vm_stack_top),
            ("zend_executor_globals.current_execute_data", self.current_execute_data),
            ("zend_executor_globals.opline_before_exception", self.opline_before_exception),
            ("zend_op_array.last_var", self.last_var()),
            ("zend_op_array.last", self.last),
            ("zend_op_array.opcodes", self.opcodes),
            ("zend_op_array.vars", self.vars()),
            ("zend_op_array.filename", self.filename),
            ("zend_op_array.line_start", self.line_start),
        ] {
            writeln!(f, "{name} {offset}")?;
        }
        writeln!(f, "api {}", self.api)
    }
}

/// The layout of a build, by its API number.
pub(crate) fn of_api(api: u32) -> Option<&'static Layout> {
    LAYOUTS.iter().find(|layout| layout.api == api)
}

/// `zend_execute_data`: a call. This struct and all below are the same in all versions.
pub(crate) mod execute_data {
    pub(crate) const OPLINE: usize = 0;
    pub(crate) const FUNC: usize = 24;
    /// `This.value`, an object's address.
    pub(crate) const THIS: usize = 32;
    /// `This.u1.type_info`; its first byte is the type.
    pub(crate) const THIS_TYPE: usize = 40;
    pub(crate) const IS_OBJECT: u32 = 8;
    /// `ZEND_CALL_TOP`.
    pub(crate) const IS_TOP: u32 = 1 << 17;
    pub(crate) const PREV: usize = 48;
    /// The compiled variables follow.
    pub(crate) const BYTES: usize = 80;
}

/// `zend_function`, the part that user and internal functions share.
pub(crate) mod function {
    pub(crate) const TYPE: usize = 0;
    pub(crate) const FLAGS: usize = 4;
    /// `ZEND_ACC_CALL_VIA_TRAMPOLINE`.
    pub(crate) const IS_TRAMPOLINE: u32 = 1 << 18;
    pub(crate) const NAME: usize = 8;
    pub(crate) const SCOPE: usize = 16;
    /// `ZEND_INTERNAL_FUNCTION`.
    pub(crate) const INTERNAL: u8 = 1;
    /// `ZEND_USER_FUNCTION`.
    pub(crate) const USER: u8 = 2;
    /// `ZEND_EVAL_CODE`.
    pub(crate) const EVAL: u8 = 4;
    /// Bytes copied of a function: up to `line_start`, in any version.
    pub(crate) const BYTES: usize = 184;
    /// Bytes copied of an internal function, which may end at the end of a mapping.
    pub(crate) const INTERNAL_BYTES: usize = 48;
}

/// `zend_op`: an opcode.
pub(crate) mod op {
    /// `extended_value`, followed by `lineno` and `opcode`: the bytes copied of an opcode.
    pub(crate) const EXTENDED_VALUE: usize = 20;
    pub(crate) const COPIED: usize = 9;
    /// `op2`, `opcode` and `op2_type`; `IS_CONST`.
    pub(crate) const OPERAND_2: usize = 12;
    pub(crate) const CODE: usize = 28;
    pub(crate) const KIND_2: usize = 30;
    pub(crate) const CONSTANT: u8 = 1;
    /// `ZEND_DO_FCALL`, `ZEND_DO_ICALL`, `ZEND_DO_UCALL`, `ZEND_DO_FCALL_BY_NAME`: the same in all
    /// versions, as are those below.
    pub(crate) const CALLS: [u8; 4] = [60, 129, 130, 131];
    /// Those, `ZEND_INCLUDE_OR_EVAL`, and `ZEND_FETCH_OBJ_R`, by which 8.4 runs a property's hook.
    /// No other opcode pushes a call that does not come from C.
    pub(crate) const RUNS_CODE: [u8; 6] = [60, 129, 130, 131, 73, 82];
    /// `ZEND_INIT_FCALL_BY_NAME`, `INIT_FCALL`, `INIT_NS_FCALL_BY_NAME`, `INIT_METHOD_CALL`,
    /// `INIT_STATIC_METHOD_CALL`.
    pub(crate) const BEGINS_NAMED_CALL: [u8; 5] = [59, 61, 69, 112, 113];
    /// Those, `ZEND_NEW`, `INIT_USER_CALL`, `INIT_DYNAMIC_CALL`, and 8.4's
    /// `INIT_PARENT_PROPERTY_HOOK_CALL`.
    pub(crate) const BEGINS_CALL: [u8; 9] = [59, 61, 69, 112, 113, 68, 118, 128, 211];
    /// `ZEND_FRAMELESS_ICALL_0` to `_3`, of PHP 8.4 and later; before, no opcode has these numbers.
    pub(crate) const FRAMELESS: std::ops::RangeInclusive<u8> = 204..=207;
    pub(crate) const BYTES: usize = 32;
}

/// `zend_string`.
pub(crate) mod string {
    pub(crate) const LEN: usize = 16;
    pub(crate) const VAL: usize = 24;
}

/// `zval`: 8 bytes of content, then the type.
pub(crate) mod zval {
    pub(crate) const BYTES: usize = 16;
    pub(crate) const TYPE: usize = 8;
    pub(crate) const UNDEFINED: u8 = 0;
    pub(crate) const NULL: u8 = 1;
    pub(crate) const FALSE: u8 = 2;
    pub(crate) const TRUE: u8 = 3;
    pub(crate) const INTEGER: u8 = 4;
    pub(crate) const FLOAT: u8 = 5;
    pub(crate) const STRING: u8 = 6;
    pub(crate) const ARRAY: u8 = 7;
    pub(crate) const OBJECT: u8 = 8;
    pub(crate) const RESOURCE: u8 = 9;
    pub(crate) const REFERENCE: u8 = 10;
    /// `IS_INDIRECT`: the content is the address of the value.
    pub(crate) const INDIRECT: u8 = 12;
}

/// `zend_reference.val`.
pub(crate) const REFERENCE_VALUE: usize = 8;

/// `zend_object.ce`.
pub(crate) const OBJECT_CLASS: usize = 16;

/// `zend_array`: a table of buckets, with a table of their numbers by hash before them.
pub(crate) mod array {
    pub(crate) const FLAGS: usize = 8;
    /// `HASH_FLAG_PACKED`: there are no keys that are texts.
    pub(crate) const IS_PACKED: u32 = 1 << 2;
    pub(crate) const MASK: usize = 12;
    pub(crate) const BUCKETS: usize = 16;
    pub(crate) const USED: usize = 24;
    pub(crate) const COUNT: usize = 28;
    pub(crate) const BYTES: usize = 56;
    /// `Bucket`: a `zval` with the number of the next bucket in its last four bytes, hash, key.
    pub(crate) const BUCKET_BYTES: usize = 32;
    pub(crate) const NEXT: usize = 12;
    pub(crate) const HASH: usize = 16;
    pub(crate) const KEY: usize = 24;
}

/// `zend_executor_globals.symbol_table`, a `zend_array`.
pub(crate) const SYMBOL_TABLE: usize = 304;

/// PHP's heap: each chunk begins with the address of its `zend_mm_heap`, which is in the first
/// chunk. These structs of `Zend/zend_alloc.c` are in no header.
pub(crate) mod heap {
    /// Size of a chunk, and its alignment.
    pub(crate) const CHUNK_BYTES: u64 = 2 << 20;
    /// `zend_mm_chunk.heap_slot`.
    pub(crate) const IN_CHUNK: u64 = 64;
    pub(crate) const SIZE: usize = 16;
    pub(crate) const PEAK: usize = 24;
    pub(crate) const BYTES: usize = 32;
}

/// `zend_class_entry.name`.
pub(crate) const CLASS_NAME: usize = 8;

/// `zend_generator`: `execute_data`, and `node.parent`, the generator that it delegates to.
pub(crate) mod generator {
    pub(crate) const EXECUTE_DATA: usize = 56;
    pub(crate) const PARENT: usize = 152;
}

/// `sapi_globals.request_info`: C strings.
pub(crate) mod request_info {
    /// `sapi_globals.server_context`, before them.
    pub(crate) const SERVER_CONTEXT: usize = 0;
    pub(crate) const METHOD: usize = 8;
    pub(crate) const URI: usize = 48;
}
