//! Sessions over several requests.

use crate::case::{Case, Theme};
use samovar_testkit::http::Request;

/// Operations in sequence, by a client that keeps its cookies.
const WALKS: &[(&str, &[&str])] = &[
    ("counts", &["count", "count", "count"]),
    ("read only", &["count", "read", "read", "count"]),
    ("status", &["status", "status"]),
    ("id is kept", &["id-kept", "id-kept"]),
    ("regenerated", &["count", "regenerate", "count"]),
    ("regenerated and deleted", &["count", "regenerate-delete", "count"]),
    ("destroyed", &["count", "count", "destroy", "count"]),
    ("flash", &["flash-set", "flash-show", "flash-show"]),
    ("written early", &["written-early", "read"]),
    ("aborted", &["count", "abort", "read"]),
    ("reset", &["count", "reset", "read"]),
    ("unset", &["count", "unset", "read"]),
    ("started twice", &["twice"]),
    ("started late", &["late"]),
    ("another name", &["name", "name", "count"]),
    ("id chosen by the script", &["set-id", "set-id"]),
    ("strict", &["strict", "strict"]),
    ("cookie parameters", &["cookie-params", "default-params"]),
    ("options", &["options", "default-params"]),
    ("limiter nocache", &["limiter&limiter=nocache"]),
    ("limiter none", &["limiter&limiter="]),
    ("limiter rubbish", &["limiter&limiter=rubbish"]),
    ("without cookies", &["no-cookies", "count"]),
    ("id in links", &["trans-sid"]),
    ("types", &["types", "types"]),
    ("encoded", &["encode", "read"]),
    ("another serializer", &["php-serialize", "php-serialize"]),
    ("big", &["big", "big"]),
    ("own handler", &["handler", "count"]),
    ("exit", &["exit", "read"]),
    ("in a shutdown function", &["in-shutdown", "read"]),
    ("after the request is finished", &["finished", "read"]),
];

fn target(name: &str) -> String {
    format!("/session.php?do={name}")
}

pub(crate) fn theme() -> Theme {
    let mut cases: Vec<_> = WALKS
        .iter()
        .map(|(name, walk)| Case::steps(*name, walk.iter().map(|n| Request::get(&target(n)))))
        .collect();
    let with_id = |name: &str, case: &str, id: &str| {
        Case::one(name, Request::get(&target(case)).header("Cookie", &format!("PHPSESSID={id}")))
    };
    let fatal = ["fatal", "read"].map(|name| Request::get(&target(name)));
    cases.extend([
        Case::steps("fatal error", fatal).fails(),
        with_id("id by the client", "id-kept", "abcdefghijklmnopqrstuvwxyz"),
        with_id("id by the client, strict", "strict", "abcdefghijklmnopqrstuvwxyz"),
        with_id("id of bad characters", "id-kept", "../../etc/passwd"),
        with_id("id with nul", "id-kept", "abc%00def"),
        with_id("id too long", "id-kept", &"a".repeat(300)),
        with_id("id empty", "id-kept", ""),
        Case::one(
            "id in the query is ignored",
            Request::get(&target("id-kept&PHPSESSID=abcdefghijklmnopqrstuvwxyz")),
        ),
        Case::one(
            "id as an array",
            Request::get(&target("id-kept")).header("Cookie", "PHPSESSID[]=a"),
        ),
        Case::steps(
            "by .user.ini",
            [
                Request::get("/auto_session/script.php"),
                Request::get("/auto_session/script.php"),
                Request::get(&target("status")),
            ],
        )
        .script_only(),
    ]);
    Theme { name: "sessions", cases }
}
