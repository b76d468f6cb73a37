//! Directives that need no knowledge of the other ones.

use crate::from::directive::Directive;
use crate::from::draft::{Block, Draft, Value};
use crate::from::shared::{self, header};
use crate::from::units;

/// Directives that Samovar needs no setting for.
const BUILT_IN: &[&str] = &[
    "absolute_redirect",
    "aio",
    "break",
    "brotli_comp_level",
    "client_body_buffer_size",
    "client_body_temp_path",
    "client_header_buffer_size",
    "default_type",
    "directio",
    "etag",
    "events",
    "fastcgi_buffer_size",
    "fastcgi_buffers",
    "fastcgi_busy_buffers_size",
    "fastcgi_connect_timeout",
    "fastcgi_ignore_client_abort",
    "fastcgi_index",
    "fastcgi_keep_conn",
    "fastcgi_max_temp_file_size",
    "fastcgi_send_timeout",
    "fastcgi_split_path_info",
    "fastcgi_temp_file_write_size",
    "fastcgi_temp_path",
    "gzip_buffers",
    "gzip_comp_level",
    "gzip_disable",
    "gzip_http_version",
    "gzip_proxied",
    "gzip_vary",
    "http2",
    "if_modified_since",
    "keepalive_disable",
    "keepalive_requests",
    "large_client_header_buffers",
    "log_format",
    "log_not_found",
    "merge_slashes",
    "open_file_cache",
    "open_file_cache_errors",
    "open_file_cache_min_uses",
    "open_file_cache_valid",
    "output_buffers",
    "pid",
    "port_in_redirect",
    "proxy_temp_path",
    "real_ip_recursive",
    "reset_timedout_connection",
    "resolver",
    "resolver_timeout",
    "scgi_temp_path",
    "sendfile",
    "sendfile_max_chunk",
    "server_name_in_redirect",
    "server_names_hash_bucket_size",
    "server_names_hash_max_size",
    "server_tokens",
    "ssl_buffer_size",
    "ssl_ciphers",
    "ssl_conf_command",
    "ssl_dhparam",
    "ssl_ecdh_curve",
    "ssl_prefer_server_ciphers",
    "ssl_session_cache",
    "ssl_session_tickets",
    "ssl_session_timeout",
    "ssl_stapling",
    "ssl_stapling_verify",
    "ssl_trusted_certificate",
    "tcp_nodelay",
    "tcp_nopush",
    "types",
    "types_hash_bucket_size",
    "types_hash_max_size",
    "uwsgi_temp_path",
    "variables_hash_bucket_size",
    "variables_hash_max_size",
    "worker_connections",
    "worker_cpu_affinity",
    "worker_priority",
    "worker_processes",
    "worker_rlimit_nofile",
    "daemon",
    "master_process",
    "multi_accept",
    "use",
    "fastcgi_read_timeout_ignored",
    "rewrite_log",
    "underscores_in_headers_off",
];

/// Directives without a counterpart, by the start of their name, and the advice.
const ADVICE: &[(&str, &str)] = &[
    (
        "proxy_",
        "Samovar forwards no requests to HTTP servers: keep a proxy in front for these paths",
    ),
    ("fastcgi_cache", "no cache of responses: use a CDN or a proxy, or Samovar\\Cache in PHP"),
    ("limit_req", "no rate limit: `limits.client_share` shares the queue fairly between clients"),
    ("limit_conn", "set `limits.client_connections_max`: it applies to every client"),
    ("limit_rate", "no limit on the rate of a response: use a proxy in front"),
    ("limit_except", "check the method in PHP"),
    ("auth_", "no access control with passwords: check access in PHP, or in a proxy in front"),
    ("satisfy", "check access in PHP, or in a proxy in front"),
    ("allow", "no rules for addresses: use a firewall, or check REMOTE_ADDR in PHP"),
    ("deny", "no rules for addresses: use a firewall, or check REMOTE_ADDR in PHP"),
    ("map", "no variables: decide it in PHP, or with `host` and `path` of a [[location]]"),
    ("geo", "no variables: decide it in PHP"),
    ("set", "no variables: decide it in PHP"),
    ("split_clients", "no variables: decide it in PHP"),
    ("sub_filter", "change the text in PHP"),
    ("autoindex", "no listings of folders: write them in PHP"),
    ("charset", "add the charset with `headers = { Content-Type = … }` in a [[location]]"),
    ("error_page", "error pages are files: `error_pages` of a [[location]]"),
    ("stub_status", "use `admin` and its /metrics"),
    ("mail", "Samovar serves HTTP only: keep nginx for it"),
    ("stream", "Samovar serves HTTP only: keep nginx for it"),
    ("load_module", "nginx's modules are not available: see the directives of the module"),
    ("perl", "no code in the configuration: write it in PHP"),
    ("js_", "no code in the configuration: write it in PHP"),
    ("lua_", "no code in the configuration: write it in PHP"),
    ("underscores_in_headers", "headers with underscores are dropped"),
    ("internal", "no internal locations: deny the path, or use [sendfile]"),
    ("add_trailer", "no trailers"),
    ("valid_referers", "check the header Referer in PHP"),
    ("mirror", "no copies of requests"),
    ("uwsgi_", "Samovar runs PHP only: keep nginx for it"),
    ("scgi_", "Samovar runs PHP only: keep nginx for it"),
    ("grpc_", "Samovar forwards no requests: keep nginx for it"),
];

/// Place of a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Outside of servers: values of the server apply before these.
    Http,
    /// The server with the general settings.
    Main,
    /// Another server, or a location: only keys of the block can be set.
    Block,
}

/// Converts one directive. `block` is the table for its hosts and paths.
pub(super) fn convert(draft: &mut Draft, block: &mut Block, d: &Directive, scope: Scope) {
    let origin = &d.origin;
    let arg = d.arg(0);
    let is_on = arg.eq_ignore_ascii_case("on");
    match d.name.as_str() {
        "client_max_body_size" => body_size(draft, block, d, scope),
        "add_header" => header(draft, block, arg, d.arg(1), origin),
        "fastcgi_hide_header" | "more_clear_headers" => header(draft, block, arg, "", origin),
        "expires" => expires(draft, block, d),
        "gzip" | "brotli" | "zstd" => compression(draft, block, d, scope),
        "gzip_types" | "brotli_types" | "zstd_types" => types(draft, d),
        "gzip_min_length" => size(draft, scope, "bytes_min", d),
        "gzip_static" | "brotli_static" => {
            let value = Value::plain(!arg.eq_ignore_ascii_case("off"));
            general(draft, scope, ("compression", "precompressed"), value, d);
        }
        "access_log" => access_log(draft, block, d, scope),
        "error_log" => error_log(draft, d, scope),
        "keepalive_timeout" => timeout(draft, scope, "idle", d),
        "client_header_timeout" => timeout(draft, scope, "header", d),
        "client_body_timeout" => timeout(draft, scope, "body", d),
        "send_timeout" => timeout(draft, scope, "write", d),
        "fastcgi_read_timeout" => read_timeout(draft, block, d, scope),
        "fastcgi_request_buffering" => {
            general(draft, scope, ("", "request_buffering"), Value::plain(is_on), d);
        }
        "fastcgi_intercept_errors" => block.set("intercept", Value::plain(is_on), origin),
        "fastcgi_param" => shared::variable(draft, block, arg, d.arg(1), origin),
        "set_real_ip_from" => draft.add("", "trusted_proxies", arg, origin),
        "real_ip_header" => match arg.to_ascii_lowercase().as_str() {
            "x-forwarded-for" | "proxy_protocol" => {
                draft.built_in(origin, "headers of `trusted_proxies` are read");
            }
            _ => draft.missing(origin, "clients' addresses are read from X-Forwarded-For"),
        },
        "user" => {
            general(draft, scope, ("", "user"), Value::text(arg), d);
            if let Some(group) = d.args.get(1) {
                general(draft, scope, ("", "group"), Value::text(group), d);
            }
        }
        "ssl_certificate" => draft.add("tls", "certificates", arg, origin),
        "ssl_certificate_key" => draft.add("tls", "keys", arg, origin),
        "ssl_client_certificate" => draft.set("tls", "client_ca", Value::text(arg), origin),
        "ssl_verify_client" => client_certificates(draft, d),
        "ssl_protocols" => {
            let is_new = d.args.iter().all(|version| version == "TLSv1.3");
            let version = if is_new { "1.3" } else { "1.2" };
            general(draft, scope, ("tls", "min_version"), Value::text(version), d);
        }
        _ => rest(draft, d),
    }
}

/// `ssl_verify_client`: one server that requires certificates requires them of all clients.
fn client_certificates(draft: &mut Draft, d: &Directive) {
    match d.arg(0) {
        "off" => draft.built_in(&d.origin, "not needed"),
        "on" => draft.client_certificates(true, &d.origin),
        "optional" => draft.client_certificates(false, &d.origin),
        _ => draft.missing(&d.origin, "certificates are verified: check them in PHP"),
    }
}

/// A directive that has no setting.
fn rest(draft: &mut Draft, d: &Directive) {
    let name = d.name.as_str();
    if BUILT_IN.contains(&name) {
        return draft.built_in(&d.origin, "not needed");
    }
    if name.contains("_by_lua") {
        return draft.missing(&d.origin, "no code in the configuration: write it in PHP");
    }
    let is_off = d.arg(0) == "off";
    match ADVICE.iter().find(|(start, _)| name.starts_with(start)) {
        Some(_) if is_off => draft.built_in(&d.origin, "not needed"),
        Some((_, advice)) => draft.missing(&d.origin, *advice),
        None => draft.missing(&d.origin, format!("there is no setting like `{}`", short(name))),
    }
}

fn short(name: &str) -> String {
    crate::from::origin::short(name)
}

/// Sets a setting of the whole server.
fn general(
    draft: &mut Draft,
    scope: Scope,
    (table, key): (&'static str, &str),
    value: Value,
    d: &Directive,
) {
    if scope == Scope::Http {
        draft.settings.set(table, key, value, &d.origin);
    } else {
        draft.set(table, key, value, &d.origin);
    }
}

fn size(draft: &mut Draft, scope: Scope, key: &str, d: &Directive) {
    match units::bytes(d.arg(0), 1) {
        Some(0) => draft.built_in(&d.origin, "not needed"),
        Some(bytes) => {
            general(draft, scope, ("compression", key), Value::Text(units::size(bytes)), d);
        }
        None => draft.missing(&d.origin, format!("`{}` is no size", short(d.arg(0)))),
    }
}

fn body_size(draft: &mut Draft, block: &mut Block, d: &Directive, scope: Scope) {
    let Some(bytes) = units::bytes(d.arg(0), 1) else {
        return draft.missing(&d.origin, format!("`{}` is no size", short(d.arg(0))));
    };
    // nginx: no limit.
    let size = if bytes == 0 { String::from("1024G") } else { units::size(bytes) };
    if scope == Scope::Block {
        block.set("body_bytes_max", Value::Text(size), &d.origin);
    } else {
        general(draft, scope, ("limits", "body_bytes_max"), Value::Text(size), d);
    }
}

fn timeout(draft: &mut Draft, scope: Scope, key: &str, d: &Directive) {
    match units::milliseconds(d.arg(0), 1_000) {
        Some(0) => draft.missing(&d.origin, "the timeout cannot be 0"),
        Some(time) => general(draft, scope, ("timeouts", key), Value::Text(units::time(time)), d),
        None => draft.missing(&d.origin, format!("`{}` is no time", short(d.arg(0)))),
    }
}

fn read_timeout(draft: &mut Draft, block: &mut Block, d: &Directive, scope: Scope) {
    let paths = match block.entries.get("", "path").map(|entry| &entry.value) {
        Some(Value::Text(path)) => vec![path.clone()],
        Some(Value::List(paths)) => paths.clone(),
        _ => Vec::new(),
    };
    if scope != Scope::Block || paths.is_empty() {
        return timeout(draft, scope, "response", d);
    }
    let Some(time) = units::milliseconds(d.arg(0), 1_000) else {
        return draft.missing(&d.origin, format!("`{}` is no time", short(d.arg(0))));
    };
    for path in paths.iter().filter(|path| path.starts_with('/')) {
        draft.set("timeouts.path", path, Value::Text(units::time(time)), &d.origin);
    }
}

fn expires(draft: &mut Draft, block: &mut Block, d: &Directive) {
    let text = d.args.iter().find(|arg| *arg != "modified").map_or("", String::as_str);
    let value = match text {
        "off" => return draft.built_in(&d.origin, "not needed"),
        "max" => String::from("max-age=315360000"),
        "epoch" => String::from("no-cache"),
        text if text.starts_with('-') => String::from("no-cache"),
        text => match units::milliseconds(text.trim_start_matches('+'), 1_000) {
            Some(time) => format!("max-age={}", time / 1_000),
            None => return draft.missing(&d.origin, "it is no constant time: set it in PHP"),
        },
    };
    header(draft, block, "Cache-Control", &value, &d.origin);
}

fn compression(draft: &mut Draft, block: &mut Block, d: &Directive, scope: Scope) {
    let coding = if d.name == "brotli" { "br" } else { d.name.as_str() };
    match (d.arg(0) == "on", scope) {
        (true, _) => draft.add("compression", "codings", coding, &d.origin),
        (false, Scope::Block) => block.set("compression", Value::plain(false), &d.origin),
        (false, _) => draft.built_in(&d.origin, "not needed"),
    }
}

fn types(draft: &mut Draft, d: &Directive) {
    if d.args.iter().any(|name| name == "*") {
        return draft.differs(&d.origin, "the default list of types is used");
    }
    draft.add("compression", "types", "text/html", &d.origin);
    for name in &d.args {
        draft.add("compression", "types", name, &d.origin);
    }
}

fn access_log(draft: &mut Draft, block: &mut Block, d: &Directive, scope: Scope) {
    let target = d.arg(0);
    if scope == Scope::Block {
        return match target {
            "off" => block.set("access_log", Value::plain(false), &d.origin),
            _ => draft.missing(&d.origin, "there is one access log: filter its lines"),
        };
    }
    let json = d.args.get(1).is_some_and(|format| format.contains("json"));
    general(draft, scope, ("", "access_log"), Value::text(log_target(target)), d);
    if json {
        general(draft, scope, ("", "access_log_format"), Value::text("json"), d);
    } else if d.args.get(1).is_some_and(|format| format != "combined" && !format.contains('=')) {
        draft.differs(&d.origin, "the format is `combined` or `json` (`access_log_format`)");
    }
}

fn error_log(draft: &mut Draft, d: &Directive, scope: Scope) {
    if scope == Scope::Block {
        return draft.missing(&d.origin, "there is one log: filter its lines");
    }
    general(draft, scope, ("", "log"), Value::text(log_target(d.arg(0))), d);
    let level = match d.arg(1) {
        "debug" => "debug",
        "info" | "notice" => "info",
        "error" | "crit" | "alert" | "emerg" | "" => "error",
        _ => "warn",
    };
    general(draft, scope, ("", "log_level"), Value::text(level), d);
}

/// Target of a log.
pub(super) fn log_target(target: &str) -> String {
    match target {
        "/dev/stdout" | "/dev/stderr" | "/proc/self/fd/2" | "/proc/self/fd/1" | "stderr" => {
            String::from("-")
        }
        "/dev/null" => String::from("off"),
        target if target.starts_with("syslog:") => {
            let facility = target.split([':', ',']).find_map(|part| part.strip_prefix("facility="));
            facility.map_or_else(|| String::from("syslog"), |name| format!("syslog:{name}"))
        }
        target => target.to_owned(),
    }
}
