//! Settings, folders and process state: each is requested twice, and the second request finds no
//! trace of the first.

use crate::case::{Case, Is, Theme};
use samovar_testkit::http::Request;

const DO: &[&str] = &[
    "ini",
    "ini-restore",
    "ini-shared",
    "locale",
    "chdir",
    "umask",
    "putenv",
    "stat",
    "include-path",
    "random",
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
    "server-by-name",
    "request-time",
    "user",
    "headers-in-cli-style",
];

/// State that extensions keep until the end of the request; for a handler, as long as static
/// variables live.
const LIVES_ON: &[&str] = &[
    "timezone",
    "encoding",
    "autoload",
    "streams",
    "stream-context",
    "libxml",
    "json-state",
    "strtok",
    "globals",
];

pub(crate) fn theme() -> Theme {
    let target = |name: &str| format!("/settings.php?do={name}");
    let twice = |name: &&str| {
        Case::steps(*name, [Request::get(&target(name)), Request::get(&target(name))])
    };
    let mut cases: Vec<_> = DO.iter().map(twice).collect();
    cases.extend(LIVES_ON.iter().map(twice).map(Case::script_only));
    cases.extend([
        Case::get("sapi", &target("sapi")),
        Case::get("server-types", &target("server-types")),
        Case::one("getenv", Request::get(&target("getenv&a=1")).header("X-A", "1")),
        Case::one("getenv of a form", Request::form(&target("getenv"), "a=1")),
        Case::one("getenv of all", Request::form(&target("getenv-all&a=1"), "b=1")),
        Case::get("extensions", &target("extensions")).differs(
            "each SAPI's own module; Debian's php-fpm leaves pcntl out",
            Is::Own(200, &["\"samovar\"", "\"session\"", "\"Zend OPcache\""]),
        ),
        Case::get("binary", &target("binary")).differs(
            "an embedded PHP has no binary of its own",
            Is::Replaced(&[("/usr/sbin/php-fpm8.2", ""), ("/usr/sbin/php-fpm8.4", "")]),
        ),
        Case::get("ini-files", &target("ini-files")),
    ]);
    Theme { name: "settings", cases }
}
