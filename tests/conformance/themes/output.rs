//! Output buffers, flushes, and their effect on headers.

use crate::case::{Case, Theme};
use samovar_testkit::http::Request;

const DO: &[&str] = &[
    "levels",
    "status",
    "length",
    "clean",
    "clean-outermost",
    "get-flush",
    "too-many-ends",
    "callback",
    "callback-phases",
    "callback-false",
    "callback-chunks",
    "callback-flags",
    "callback-nested-start",
    "callback-header",
    "unflushed",
    "implicit",
    "flush",
    "flush-empty",
    "flush-without-ob-flush",
    "unbuffered",
    "over-the-buffer",
    "big",
    "big-at-once",
    "bytes",
    "functions",
    "inline",
    "rewrite",
    "rewrite-reset",
    "gzhandler",
    "zlib",
    "callback-at-end",
    "headers-only-then-late",
];

pub(crate) fn theme() -> Theme {
    let target = |name: &str| format!("/output.php?do={name}");
    let mut cases: Vec<_> = DO.iter().map(|name| Case::get(*name, &target(name))).collect();
    cases.push(Case::get("callback-throws", &target("callback-throws")).fails());
    let after = ["rewrite-reset", "rewrite"].map(|name| Request::get(&target(name)));
    cases.push(Case::steps("rewrite-reset, then rewrite", after));
    for name in ["gzhandler", "zlib"] {
        for coding in ["gzip", "deflate", "br", "gzip, deflate, br", "identity"] {
            let request = Request::get(&target(name)).header("Accept-Encoding", coding);
            cases.push(Case::one(format!("{name}, {coding} accepted"), request));
        }
    }
    Theme { name: "output", cases }
}
