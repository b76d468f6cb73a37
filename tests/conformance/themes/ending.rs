//! Ends of scripts: exit, shutdown functions, destructors, `fastcgi_finish_request`.

use crate::case::{Case, Is, Theme};
use samovar_testkit::http::Request;

const DO: &[&str] = &[
    "exit",
    "exit-text",
    "exit-code",
    "exit-code-255",
    "die",
    "exit-in-try",
    "exit-with-buffers",
    "exit-in-buffer-callback",
    "return",
    "shutdown",
    "shutdown-exit",
    "shutdown-header",
    "shutdown-buffers",
    "destructor",
    "destructor-at-exit",
    "destructor-global",
    "destructor-exit",
    "destructor-throws",
    "finish-empty",
    "finish-then-fatal",
    "finish-in-shutdown",
    "finish-with-buffers",
    "connection",
    "ticks",
    "generator",
    "fiber",
];

pub(crate) fn theme() -> Theme {
    let target = |name: &str| format!("/ending.php?do={name}");
    let mut cases: Vec<_> = DO.iter().map(|name| Case::get(*name, &target(name))).collect();
    cases.push(Case::get("shutdown-throws", &target("shutdown-throws")).fails());
    cases.push(Case::get("shutdown-cwd", &target("shutdown-cwd")).differs_in_resident(
        "php-fpm goes back to its own folder when the main script ends; a handler is no script",
        Is::Replaced(&[("put back", "as left")]),
    ));
    // Two requests in sequence: tests the state that the first leaves in a resident worker.
    let after = ["shutdown-throws", "generator"].map(|name| Request::get(&target(name)));
    cases.push(Case::steps("shutdown-throws, then generator", after).fails());
    let then_read = |name: &str| [Request::get(&target(name)), Request::get(&target("read-mark"))];
    cases.push(Case::steps("finish", then_read("finish")));
    cases.push(Case::steps("mark", then_read("mark")));
    Theme { name: "ending", cases }
}
