//! What C sees of the ring: `crates/worker/csrc/ring.h`, written from the Rust definitions, so that neither a field nor
//! a code is said twice.
//!
//! `UPDATE=1 cargo test -p samovar-ring` writes it; without, the test fails while it is old.

/// A struct in shared memory, without padding, whose fields C knows too. A field's comment goes with it.
macro_rules! mirrored {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[doc = $doc:literal])* $field:ident: $type:ident,)+
        }
    ) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
        pub struct $name {
            $($(#[doc = $doc])* $field: $type,)+
        }

        #[cfg(all(test, not(loom)))]
        impl $name {
            /// Type, name and comment of each, in their order.
            pub(crate) const FIELDS: &[[&str; 3]] =
                &[$([stringify!($type), stringify!($field), concat!($($doc),*)]),+];
        }
    };
}
pub(crate) use mirrored;

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::layout::REPORT_BYTES;
    use crate::report::{Ending, LeaveReason};
    use crate::request::{
        FLAG_APP, FLAG_FASTCGI, FLAG_HTTPS, FLAG_LEDGER, FLAG_WHOLE, Head, Header, Str,
    };
    use std::fmt::Write as _;

    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../worker/csrc/ring.h");
    const LINE_MAX: usize = 100;

    /// One field a line; their types have the alignment that Rust's `repr(C)` gives them.
    fn structure(name: &str, bytes: usize, fields: &[[&str; 3]]) -> String {
        let mut out = String::from("typedef struct {\n");
        for [rust, field, comment] in fields {
            let c = match *rust {
                "Str" => "samovar_str",
                "u32" => "uint32_t",
                "i64" => "int64_t",
                other => panic!("{other} has no twin in C"),
            };
            let comment = comment.trim();
            let comment =
                if comment.is_empty() { String::new() } else { format!(" /* {comment} */") };
            let line = format!("    {c} {field};{comment}");
            assert!(line.len() <= LINE_MAX, "too long for a line of C: {line}");
            let _ = writeln!(out, "{line}");
        }
        let size = format!("_Static_assert(sizeof({name}) == {bytes}, \"as in Rust\");");
        let _ = writeln!(out, "}} {name};\n{size}\n");
        out
    }

    fn endings() -> String {
        let all = Ending::ALL.iter();
        let all: Vec<_> = all
            .map(|one| format!("ENDING_{} = {}", one.name().to_uppercase(), one.code()))
            .collect();
        // A line each, as clang-format has it where they do not fit on one.
        format!(
            "/* How PHP ended it. */\ntypedef enum {{\n    {}\n}} samovar_ending;\n\n",
            all.join(",\n    ")
        )
    }

    fn reasons() -> String {
        let mut out = String::from("typedef enum {\n    LEAVE_NOT = 0,\n");
        let last = LeaveReason::ALL.len() - 1;
        for (at, reason) in LeaveReason::ALL.iter().enumerate() {
            let comma = if at == last { "" } else { "," };
            // Above its line: so no tool wants to align it.
            let comment = format!("    /* {} */", reason.doc());
            assert!(comment.len() <= LINE_MAX, "too long for a line of C: {comment}");
            let name = reason.name().to_uppercase();
            let _ = writeln!(out, "{comment}\n    LEAVE_{name} = {}{comma}", reason.code());
        }
        out + "} leave_reason;\n"
    }

    fn header() -> String {
        format!(
            "/* The ring as C sees it: written by `UPDATE=1 cargo test -p samovar-ring` from\n \
             * crates/ring/src/request.rs and report.rs. Change those. */\n\
             #ifndef SAMOVAR_RING_H\n#define SAMOVAR_RING_H\n\n#include <stdint.h>\n\n\
             /* A string of a request: offset from the start of its head, and length without its NUL. */\n\
             {}/* One header of a request. */\n{}\
             /* Flags of a request: it came over TLS; its script is the front controller; somebody reads\n \
             * what is said of it; a web server has told all its variables; it is a sample of whole\n \
             * scripts. */\n\
             enum {{\n    SAMOVAR_HTTPS = {FLAG_HTTPS},\n    SAMOVAR_APP = {FLAG_APP},\n    \
             SAMOVAR_LEDGER = {FLAG_LEDGER},\n    \
             SAMOVAR_FASTCGI = {FLAG_FASTCGI},\n    SAMOVAR_WHOLE = {FLAG_WHOLE}\n}};\n\n\
             /* Most bytes of what is said of it. */\nenum {{ SAMOVAR_REPORT_BYTES = {REPORT_BYTES} }};\n\n\
             {}\
             /* A request's head. Offset 0 means absent for the optional strings. */\n{}\
             /* Why a worker cannot go on after this request. */\n{}\n#endif\n",
            structure("samovar_str", size_of::<Str>(), Str::FIELDS),
            structure("samovar_header", size_of::<Header>(), Header::FIELDS),
            endings(),
            structure("samovar_head", size_of::<Head>(), Head::FIELDS),
            reasons(),
        )
    }

    #[test]
    fn c_sees_the_ring_as_it_is() {
        let expected = header();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(FILE, &expected).expect("csrc can be written");
        }
        let found = std::fs::read_to_string(FILE).unwrap_or_default();
        assert!(
            found == expected,
            "{FILE} is old: `UPDATE=1 cargo test -p samovar-ring` writes it"
        );
    }
}
