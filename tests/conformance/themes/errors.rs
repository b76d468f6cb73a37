//! Errors of every kind, shown, hidden, handled.

use crate::case::{Case, Theme};
use samovar_testkit::http::Request;

const DO: &[&str] = &[
    "notice",
    "warning",
    "deprecated",
    "user",
    "parse-caught",
    "include-missing",
    "recursion",
    "hidden",
    "hidden-fatal",
    "hidden-fatal-with-status",
    "hidden-exception-with-status",
    "fatal-with-status",
    "hidden-fatal-after-output",
    "hidden-fatal-after-flush",
    "hidden-exception",
    "hidden-memory",
    "hidden-parse",
    "hidden-user-error",
    "stderr",
    "fatal-after-flush",
    "silenced",
    "not-reported",
    "decorated",
    "handler",
    "handler-declines",
    "handler-level",
    "handler-restored",
    "error-exception",
    "exception-handler",
    "exception-handler-error",
    "last",
    "last-cleared",
    "assert",
    "not-utf8",
    "long",
    "log",
];

/// These end with an uncaught error while the status can still be set.
const FATAL: &[&str] = &[
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
    "compile",
    "eval",
    "require-missing",
    "memory",
    "memory-slowly",
    "memory-in-shutdown",
    "time",
    "time-in-shutdown",
    "fatal-with-headers",
    "plain",
    "exception-handler-throws",
    "in-shutdown",
    "in-destructor",
    "in-callback",
];

pub(crate) fn theme() -> Theme {
    let target = |name: &str| format!("/errors.php?do={name}");
    let mut cases: Vec<_> = DO.iter().map(|name| Case::get(*name, &target(name))).collect();
    cases.extend(FATAL.iter().map(|name| Case::get(*name, &target(name)).fails()));
    // Aftermath of an error: the following pages are served as if no error had occurred.
    let then_others = |name: &str| {
        let requests = [name, "last-cleared", "notice"].map(|n| Request::get(&target(n)));
        Case::steps(format!("{name}, then others"), requests)
    };
    cases.extend(["handler", "exception-handler", "decorated"].map(then_others));
    cases
        .extend(["fatal", "memory", "exception", "parse", "plain"].map(|n| then_others(n).fails()));
    Theme { name: "errors", cases }
}
