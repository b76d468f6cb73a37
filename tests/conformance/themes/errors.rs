//! Errors of every kind, shown, hidden, handled.

use crate::case::{Case, Theme};
use samovar_testkit::http::Request;

const DO: &[&str] = &[
    "notice",
    "warning",
    "deprecated",
    "user",
    "user-error",
    "fatal",
    "fatal-first",
    "exception",
    "exception-previous",
    "exception-own-string",
    "type-error",
    "division&zero=0",
    "match",
    "abstract",
    "parse",
    "parse-caught",
    "compile",
    "eval",
    "include-missing",
    "require-missing",
    "memory",
    "memory-slowly",
    "memory-in-shutdown",
    "time",
    "time-in-shutdown",
    "recursion",
    "hidden",
    "hidden-fatal",
    "hidden-fatal-after-output",
    "hidden-fatal-after-flush",
    "hidden-fatal-with-status",
    "hidden-exception",
    "hidden-memory",
    "hidden-parse",
    "hidden-user-error",
    "stderr",
    "fatal-after-flush",
    "fatal-with-status",
    "fatal-with-headers",
    "plain",
    "silenced",
    "not-reported",
    "decorated",
    "handler",
    "handler-declines",
    "handler-level",
    "handler-restored",
    "error-exception",
    "exception-handler",
    "exception-handler-throws",
    "exception-handler-error",
    "last",
    "last-cleared",
    "in-shutdown",
    "in-destructor",
    "in-callback",
    "assert",
    "not-utf8",
    "long",
    "log",
];

pub(crate) fn theme() -> Theme {
    let target = |name: &str| format!("/errors.php?do={name}");
    let mut cases: Vec<_> = DO.iter().map(|name| Case::get(*name, &target(name))).collect();
    // What an error leaves: the page after it is served as if nothing had been.
    for name in [
        "fatal",
        "memory",
        "exception",
        "parse",
        "handler",
        "exception-handler",
        "decorated",
        "plain",
    ] {
        let requests = [name, "last-cleared", "notice"].map(|n| Request::get(&target(n)));
        cases.push(Case::steps(format!("{name}, then others"), requests));
    }
    Theme { name: "errors", cases }
}
