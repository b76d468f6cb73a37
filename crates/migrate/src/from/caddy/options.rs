//! Global options of a Caddyfile, and FrankenPHP's.

use crate::from::directive::Directive;
use crate::from::draft::{Draft, Value};
use crate::from::shared::{self, resolved};
use std::path::Path;

/// Options that Samovar needs no setting for.
const BUILT_IN: &[&str] = &[
    "order",
    "storage",
    "admin",
    "persist_config",
    "http_port",
    "https_port",
    "auto_https",
    "skip_install_trust",
    "metrics",
    "default_bind",
    "filesystem",
    "ocsp_stapling",
];

/// A worker script, from the options or from `php_server`.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    pub(super) file: String,
    pub(super) directive: Directive,
}

/// Converts the options. Returns the workers.
pub(super) fn convert(draft: &mut Draft, file: &Path, options: &Directive) -> Vec<Worker> {
    let mut workers = Vec::new();
    for d in options.inner() {
        let origin = &d.origin;
        match d.name.as_str() {
            "email" => draft.set("acme", "email", Value::text(d.arg(0)), origin),
            "acme_ca" => draft.set("acme", "directory", Value::text(d.arg(0)), origin),
            "debug" => draft.set("", "log_level", Value::text("debug"), origin),
            "grace_period" => shared::time(draft, ("timeouts", "drain"), d.arg(0), 1_000, origin),
            "log" => log(draft, d, "log"),
            "frankenphp" => frankenphp(draft, file, d, &mut workers),
            "servers" => servers(draft, d),
            name if BUILT_IN.contains(&name) => draft.built_in(origin, "not needed"),
            _ => draft.missing(origin, "there is no setting like it"),
        }
    }
    workers
}

fn frankenphp(draft: &mut Draft, file: &Path, d: &Directive, workers: &mut Vec<Worker>) {
    let number = |name: &str| {
        let found = d.first(name)?;
        Some((found.arg(0).parse::<u64>().ok().filter(|n| *n > 0)?, found.origin.clone()))
    };
    for inner in d.inner() {
        let origin = &inner.origin;
        match inner.name.as_str() {
            "worker" => workers.extend(worker(draft, file, inner)),
            "num_threads" | "max_threads" => {}
            "max_wait_time" => {
                shared::time(draft, ("timeouts", "queue"), inner.arg(0), 1_000, origin);
            }
            "php_ini" if inner.block.is_some() => {
                for line in inner.inner() {
                    shared::php(draft, &line.name, &line.args.join(" "), &line.origin);
                }
            }
            "php_ini" => shared::php(
                draft,
                inner.arg(0),
                &inner.args[1.min(inner.args.len())..].join(" "),
                origin,
            ),
            _ => draft.missing(origin, "FrankenPHP's option has no counterpart"),
        }
    }
    let is_set = draft.settings.get("", "workers").is_some();
    match (number("num_threads"), number("max_threads")) {
        (Some((_, origin)), _) if is_set => {
            draft.built_in(&origin, "`workers` is that of the worker");
        }
        (Some((min, at)), Some((max, origin))) if max > min => {
            draft.set("workers", "min", Value::plain(min), &at);
            draft.set("workers", "max", Value::plain(max), &origin);
        }
        (Some((number, origin)), _) => draft.set("", "workers", Value::plain(number), &origin),
        (None, Some((_, origin))) => draft.missing(&origin, "set `workers = \"2..16\"`"),
        (None, None) => {}
    }
}

/// Reads `worker FILE [NUMBER]` or its block.
pub(super) fn worker(draft: &mut Draft, file: &Path, d: &Directive) -> Option<Worker> {
    let mut script = d.args.first().cloned();
    let mut number = d.args.get(1).cloned();
    for inner in d.inner() {
        match inner.name.as_str() {
            "file" => script = inner.args.first().cloned(),
            "num" => number = inner.args.first().cloned(),
            "watch" => draft.built_in(&inner.origin, "use `samovar dev` for development"),
            "name" | "match" | "max_consecutive_failures" => {
                draft.built_in(&inner.origin, "not needed");
            }
            "env" => draft.missing(&inner.origin, "set it in the environment of `samovar`"),
            _ => draft.missing(&inner.origin, "the worker's option has no counterpart"),
        }
    }
    if let Some(number) = number.and_then(|number| number.parse::<u64>().ok()).filter(|n| *n > 0) {
        draft.set("", "workers", Value::plain(number), &d.origin);
    }
    let Some(script) = script else {
        draft.missing(&d.origin, "the worker has no constant file");
        return None;
    };
    Some(Worker { file: resolved(file, &script), directive: d.clone() })
}

/// `log` of the options (`key` is `log`) or of a site (`access_log`).
pub(super) fn log(draft: &mut Draft, d: &Directive, key: &str) {
    let mut target = String::from("-");
    let mut is_json = key == "access_log";
    for inner in d.inner() {
        match (inner.name.as_str(), inner.arg(0)) {
            ("output", "file") => inner.arg(1).clone_into(&mut target),
            ("output", "discard") => target = String::from("off"),
            ("output", "net") => draft.missing(&inner.origin, "use `syslog` or `journald`"),
            ("output", _) => {}
            ("format", format) => is_json = matches!(format, "json" | "filter" | "append"),
            ("level", level) if key == "log" => {
                let level = level.to_ascii_lowercase();
                draft.settings.set("", "log_level", Value::Text(level), &inner.origin);
            }
            _ => draft.missing(&inner.origin, "the log has no setting like it"),
        }
    }
    draft.settings.set("", key, Value::Text(target), &d.origin);
    if is_json && key == "access_log" {
        draft.settings.set("", "access_log_format", Value::text("json"), &d.origin);
    }
}

fn servers(draft: &mut Draft, d: &Directive) {
    for inner in d.inner() {
        let origin = &inner.origin;
        match inner.name.as_str() {
            "trusted_proxies" => {
                for network in inner.args.iter().filter(|arg| *arg != "static") {
                    if network == "private_ranges" {
                        for network in [
                            "192.168.0.0/16",
                            "172.16.0.0/12",
                            "10.0.0.0/8",
                            "127.0.0.0/8",
                            "fd00::/8",
                            "::1",
                        ] {
                            draft.add("", "trusted_proxies", network, origin);
                        }
                    } else {
                        draft.add("", "trusted_proxies", network, origin);
                    }
                }
            }
            "timeouts" => {
                for timeout in inner.inner() {
                    let key = match timeout.name.as_str() {
                        "read_body" => "body",
                        "read_header" => "header",
                        "write" => "write",
                        "idle" => "idle",
                        _ => {
                            draft.missing(&timeout.origin, "there is no such timeout");
                            continue;
                        }
                    };
                    shared::time(draft, ("timeouts", key), timeout.arg(0), 1_000, &timeout.origin);
                }
            }
            "max_header_size" => {
                shared::size(draft, ("limits", "head_bytes_max"), inner.arg(0), 1, origin);
            }
            "protocols" => draft.built_in(origin, "HTTP/1.1 and HTTP/2; there is no HTTP/3"),
            _ => draft.missing(origin, "there is no setting like it"),
        }
    }
}
