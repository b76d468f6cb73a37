//! The modules of this crate build on each other, from waiting to whole walks: none imports a
//! higher one, and no files import each other in a circle.

#[test]
fn modules_import_only_lower_ones() {
    let rooms = [
        "wait",
        "workspace",
        "port",
        "php",
        "certificate",
        "kernel",
        "tap",
        "confine",
        "family",
        "flag",
        "process",
        "binary",
        "http",
        "http2",
        "multipart",
        "secure",
        "collector",
        "deaf",
        "mute",
        "copy",
        "markdown",
        "order",
        "protoc",
        "pprof",
        "rooms",
        "authority",
        "haproxy",
        "ldap",
        "mariadb",
        "memcached",
        "mongo",
        "postgres",
        "redis",
        "ssh",
        "server",
        "oracle",
        "fpm",
        "masks",
        "visitor",
        "walk",
    ];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
