//! Settings, folders and process state: each is asked for twice, and the second request sees no trace.

use crate::case::{Case, Is, Theme};
use samovar_testkit::http::Request;

const DO: &[&str] = &[
    "ini",
    "ini-restore",
    "ini-shared",
    "timezone",
    "locale",
    "encoding",
    "chdir",
    "umask",
    "putenv",
    "include-path",
    "autoload",
    "streams",
    "stream-context",
    "libxml",
    "random",
    "json-state",
    "strtok",
    "assert-options",
    "time-limit",
    "functions",
    "version",
    "constants",
    "opcache",
    "folders",
    "relative",
    "included",
    "self",
    "globals",
    "server-by-name",
    "request-time",
    "user",
    "headers-in-cli-style",
];

pub(crate) fn theme() -> Theme {
    let target = |name: &str| format!("/settings.php?do={name}");
    let twice = |name: &&str| {
        Case::steps(*name, [Request::get(&target(name)), Request::get(&target(name))])
    };
    let mut cases: Vec<_> = DO.iter().map(twice).collect();
    cases.extend([
        Case::get("sapi", &target("sapi"))
            .differs("php_sapi_name() says who serves", Is::Replaced(&[("fpm-fcgi", "samovar")])),
        Case::get("server-types", &target("server-types")),
        Case::one("getenv", Request::get(&target("getenv&a=1")).header("X-A", "1")),
        Case::one("getenv of a form", Request::form(&target("getenv"), "a=1")),
        Case::get("extensions", &target("extensions")),
        Case::get("binary", &target("binary")),
        Case::get("ini-files", &target("ini-files")),
    ]);
    Theme { name: "settings", cases }
}
