//! Directives of a site that depend on a matcher.

use super::access;
use super::context::Context;
use super::matcher::{self, Matcher};
use super::options;
use crate::from::directive::Directive;
use crate::from::draft::{Draft, Value};
use crate::from::origin::Origin;
use crate::from::shared::{header, is_script, resolved, script_and_query, variable};
use crate::from::units;

/// Maximum depth of `handle` and `route`.
const DEPTH_MAX: usize = 8;

/// Directives without a counterpart, and the advice.
const ADVICE: &[(&str, &str)] = &[
    ("reverse_proxy", "Samovar forwards no requests to HTTP servers: keep Caddy in front"),
    ("mercure", "run Mercure's hub as a server of its own"),
    ("vulcain", "no Vulcain: see `early_hints`"),
    ("handle_errors", "error pages are files: `error_pages` of a [[location]]"),
    ("templates", "write it in PHP"),
    ("uri", "paths are not rewritten: let the front controller read REQUEST_URI"),
    ("map", "no variables: decide it in PHP"),
    ("vars", "no variables: decide it in PHP"),
    ("metrics", "use `admin` and its /metrics"),
    ("acme_server", "Samovar is no certificate authority"),
    ("request_header", "set `variables` in a [[location]]"),
    ("invoke", "named routes have no counterpart: repeat the directives"),
    ("tracing", "set `insight.otlp`"),
    ("method", "check the method in PHP"),
];

/// Converts the directives of a block. `outer` is the matcher of the block.
pub(super) fn convert(
    context: &mut Context<'_>,
    draft: &mut Draft,
    block: &[Directive],
    outer: &Matcher,
    depth: usize,
) {
    if depth > DEPTH_MAX {
        return;
    }
    context.named.extend(matcher::named(block));
    // The last definition of a name applies.
    let definitions = block.iter().filter(|d| d.name.starts_with('@')).cloned();
    context.definitions.splice(0..0, definitions);
    let outer_prefix = context.prefix.clone();
    for removed in block.iter().filter(|d| d.name == "uri" && d.arg(0) == "strip_prefix") {
        context.prefix.push_str(removed.arg(1).trim_end_matches('/'));
    }
    for d in block {
        let found = matcher::of(d, &context.named);
        let is_known = found.is_ok();
        let (mut own, args) =
            found.unwrap_or_else(|()| (matcher::widened(d, &context.definitions), &[]));
        own.add_prefix(&context.prefix);
        if !own.limit(outer) || !is_known {
            draft.missing(&d.origin, "the matcher has no counterpart: write a [[location]]");
            access::unmatched(context, draft, d, &own);
        } else if !own.paths.is_empty() || outer.paths.is_empty() {
            one(context, draft, d, &own, args, depth);
        }
        // Otherwise both matchers together select no path.
    }
    context.prefix = outer_prefix;
}

fn one(
    context: &mut Context<'_>,
    draft: &mut Draft,
    d: &Directive,
    matcher: &Matcher,
    args: &[String],
    depth: usize,
) {
    let origin = &d.origin;
    let first = args.first().map_or("", String::as_str);
    match d.name.as_str() {
        name if name.starts_with('@') => {}
        "handle" | "route" => convert(context, draft, d.inner(), matcher, depth + 1),
        "handle_path" => handle_path(context, draft, d, matcher, depth),
        "root" => root(context, draft, d, matcher, first),
        "php_server" | "php" | "php_fastcgi" => php(context, draft, d, matcher),
        "file_server" => {
            if args.iter().any(|arg| arg == "browse") {
                draft.missing(origin, "no listings of folders: write them in PHP");
            } else {
                draft.built_in(origin, "files below the root are served");
            }
            let hidden = d.all("hide").flat_map(|hide| &hide.args);
            for file in hidden {
                draft.add("", "deny_files", file, origin);
            }
        }
        "encode" => encode(draft, d, args),
        "header" => headers(context, draft, d, matcher, args),
        "redir" => redirect(context, draft, d, matcher, args),
        "respond" | "error" | "abort" => respond(context, draft, d, matcher, args),
        "rewrite" => rewrite(context, draft, d, matcher, first),
        "try_files" => match d.args.last() {
            Some(last) if !last.starts_with('=') => rewrite(context, draft, d, matcher, last),
            _ => {
                let mut block = context.block(matcher, d);
                block.set("fallback", Value::text("none"), origin);
                context.blocks.push(block);
            }
        },
        "request_body" => {
            for limit in d.all("max_size") {
                match units::bytes(limit.arg(0), 1) {
                    Some(bytes) if matcher.paths.is_empty() && context.hosts.is_empty() => {
                        let size = Value::Text(units::size(bytes));
                        draft.set("limits", "body_bytes_max", size, &limit.origin);
                    }
                    Some(bytes) => {
                        let mut block = context.block(matcher, d);
                        let size = Value::Text(units::size(bytes));
                        block.set("body_bytes_max", size, &limit.origin);
                        context.blocks.push(block);
                    }
                    None => draft.missing(&limit.origin, "it is no size"),
                }
            }
        }
        "log" => options::log(draft, d, "access_log"),
        "log_skip" | "skip_log" => {
            let mut block = context.block(matcher, d);
            block.set("access_log", Value::plain(false), origin);
            context.blocks.push(block);
        }
        "tls" => tls(context, draft, d),
        name if access::CONTROLS.contains(&name) => access::guard(context, draft, d, matcher),
        "bind" | "push" | "copy_response" => draft.missing(origin, "there is no setting like it"),
        name => {
            let known = ADVICE.iter().find(|(known, _)| *known == name);
            let advice = known.map_or("there is no setting like it", |(_, advice)| *advice);
            draft.missing(origin, advice);
        }
    }
}

/// The folder's part of the path is removed: an alias, if the block has a root.
fn handle_path(
    context: &mut Context<'_>,
    draft: &mut Draft,
    d: &Directive,
    matcher: &Matcher,
    depth: usize,
) {
    let outer_prefix = context.prefix.clone();
    let start = matcher.paths.first().and_then(|path| path.split('*').next());
    context.prefix = start.map_or(outer_prefix.clone(), |start| {
        // The paths of the matcher have the prefix of the outer blocks already.
        start.trim_end_matches('/').to_owned()
    });
    let folder = d.all("root").next().and_then(|root| root.args.last());
    if let Some(folder) = folder {
        let mut block = context.block(matcher, d);
        block.set("alias", Value::Text(resolved(context.file, folder)), &d.origin);
        context.blocks.push(block);
        let rest: Vec<Directive> = d.inner().iter().filter(|d| d.name != "root").cloned().collect();
        convert(context, draft, &rest, matcher, depth + 1);
    } else {
        draft.differs(&d.origin, "the prefix is not removed from the path that PHP gets");
        convert(context, draft, d.inner(), matcher, depth + 1);
    }
    context.prefix = outer_prefix;
}

fn root(
    context: &mut Context<'_>,
    draft: &mut Draft,
    d: &Directive,
    matcher: &Matcher,
    folder: &str,
) {
    if folder.is_empty() || folder.contains('{') {
        return draft.missing(&d.origin, "the folder is not constant: set `root`");
    }
    let folder = resolved(context.file, folder);
    match matcher.paths.as_slice() {
        [] => {
            context.root.get_or_insert((folder, d.origin.clone()));
        }
        [path] if path.ends_with("/*") => {
            let mut block = context.block(matcher, d);
            let path = path.trim_end_matches("/*").to_owned();
            block.set("alias", Value::Text(format!("{folder}{path}")), &d.origin);
            context.blocks.push(block);
        }
        _ => draft.missing(&d.origin, "a folder needs one pattern: `path = \"/x/*\"` and `alias`"),
    }
}

fn php(context: &mut Context<'_>, draft: &mut Draft, d: &Directive, matcher: &Matcher) {
    context.has_php = true;
    draft.built_in(&d.origin, "the workers run the scripts");
    if !matcher.paths.is_empty() {
        draft.differs(&d.origin, "scripts of all paths run, unless a [[location]] denies them");
    }
    let mut block = context.block(&Matcher::default(), d);
    for inner in d.inner() {
        let origin = &inner.origin;
        match inner.name.as_str() {
            "root" => root(context, draft, inner, &Matcher::default(), inner.arg(0)),
            "env" => variable(draft, &mut block, inner.arg(0), inner.arg(1), origin),
            "worker" => context.workers.extend(options::worker(draft, context.file, inner)),
            "index" if inner.arg(0) != "off" => {
                block.set("index", Value::List(inner.args.clone()), origin);
            }
            "try_files" => {
                let last = inner.args.last().map_or("", String::as_str);
                rewrite(context, draft, inner, &Matcher::default(), last);
            }
            "dial_timeout"
            | "read_timeout"
            | "write_timeout"
            | "resolve_root_symlink"
            | "split"
            | "capture_stderr"
            | "flush_interval"
            | "trusted_proxies"
            | "file_server" => {
                draft.built_in(origin, "not needed");
            }
            _ => draft.missing(origin, "the option has no counterpart"),
        }
    }
    context.blocks.push(block);
}

fn encode(draft: &mut Draft, d: &Directive, args: &[String]) {
    let mut codings: Vec<&str> = args.iter().map(String::as_str).collect();
    codings.extend(d.inner().iter().map(|inner| inner.name.as_str()));
    if codings.is_empty() {
        codings = vec!["zstd", "gzip"];
    }
    for coding in codings {
        match coding {
            "zstd" | "br" | "gzip" => draft.add("compression", "codings", coding, &d.origin),
            "minimum_length" => {
                let length = d.first("minimum_length");
                if let Some(bytes) =
                    length.and_then(|d| units::bytes(d.arg(0), 1)).filter(|b| *b > 0)
                {
                    let size = Value::Text(units::size(bytes));
                    draft.set("compression", "bytes_min", size, &d.origin);
                }
            }
            "match" => draft.differs(&d.origin, "see `compression.types`"),
            _ => draft.missing(&d.origin, "the codings are zstd, br and gzip"),
        }
    }
}

fn headers(
    context: &mut Context<'_>,
    draft: &mut Draft,
    d: &Directive,
    matcher: &Matcher,
    args: &[String],
) {
    let mut block = context.block(matcher, d);
    let mut set = |draft: &mut Draft, name: &str, values: &[String], origin: &Origin| {
        let value = values.first().map_or("", String::as_str);
        if values.len() > 1 {
            return draft.missing(origin, "texts in headers are not replaced");
        }
        if value.contains('{') {
            return draft.missing(origin, "values of headers are constant: set the header in PHP");
        }
        if name == "defer" || name == "match" {
            return draft.built_in(origin, "not needed");
        }
        if let Some(name) = name.strip_prefix('-') {
            return header(draft, &mut block, name, "", origin);
        }
        if let Some(name) = name.strip_prefix('?') {
            draft.differs(origin, "a header of PHP with this name is replaced");
            return header(draft, &mut block, name, value, origin);
        }
        header(draft, &mut block, name.trim_start_matches(['+', '>']), value, origin);
    };
    if let Some((name, values)) = args.split_first() {
        set(draft, name, values, &d.origin);
    }
    for inner in d.inner() {
        set(draft, &inner.name, &inner.args, &inner.origin);
    }
    context.blocks.push(block);
}

fn redirect(
    context: &mut Context<'_>,
    draft: &mut Draft,
    d: &Directive,
    matcher: &Matcher,
    args: &[String],
) {
    let Some((target, code)) = args.split_first() else { return };
    let status = match code.first().map(String::as_str) {
        Some("permanent") => 301,
        Some("html") => return draft.missing(&d.origin, "a redirect has a status"),
        Some(code) => match code.parse::<u16>() {
            Ok(code @ (301 | 302 | 303 | 307 | 308)) => code,
            _ if code == "temporary" => 302,
            _ => return draft.missing(&d.origin, "the status is 301, 302, 303, 307 or 308"),
        },
        None => 302,
    };
    let mut paths = matcher.paths.clone();
    let mut to = target.replace("{scheme}://", "https://");
    for whole in ["{uri}", "{http.request.uri}", "{path}"] {
        if let Some(before) = to.strip_suffix(whole) {
            if paths.is_empty() {
                paths.push(String::from("/*"));
            }
            if paths.len() > 1 {
                return draft.missing(&d.origin, "a redirect needs one pattern");
            }
            to = format!("{before}{}", paths[0]);
            break;
        }
    }
    if to.contains('{') {
        return draft.missing(&d.origin, "a target has no variables but the path: use PHP");
    }
    if paths.is_empty() {
        paths.push(String::from("/*"));
    }
    let matcher = Matcher { paths, hosts: matcher.hosts.clone() };
    let mut block = context.block(&matcher, d);
    block.set("redirect", Value::Text(to), &d.origin);
    if status != 301 {
        block.set("status", Value::plain(status), &d.origin);
    }
    context.blocks.push(block);
}

fn respond(
    context: &mut Context<'_>,
    draft: &mut Draft,
    d: &Directive,
    matcher: &Matcher,
    args: &[String],
) {
    let status = args.iter().rev().find_map(|arg| arg.parse::<u16>().ok());
    let status = if d.name == "abort" { Some(403) } else { status };
    let mut block = context.block(matcher, d);
    match status {
        Some(403) => block.set("deny", Value::plain(true), &d.origin),
        Some(status @ 400..=599) => block.set("status", Value::plain(status), &d.origin),
        _ => return draft.missing(&d.origin, "a text is no response: write a file or a script"),
    }
    if args.len() > 1 || d.name == "abort" {
        draft.differs(&d.origin, "the server's own page is sent");
    }
    context.blocks.push(block);
}

/// `rewrite` or `try_files` to a script.
fn rewrite(
    context: &mut Context<'_>,
    draft: &mut Draft,
    d: &Directive,
    matcher: &Matcher,
    target: &str,
) {
    let (script, query) = script_and_query(target);
    let absolute = format!("/{}", script.trim_start_matches('/'));
    let script = if is_script(script) { absolute.as_str() } else { script };
    if script.len() < 2 || !script.starts_with('/') {
        if !target.starts_with("{path}") {
            draft.missing(&d.origin, "the target is no constant path: use REQUEST_URI in PHP");
        }
        return;
    }
    if !query.is_empty() && query != "{query}" && query != "{http.request.uri.query}" {
        draft.differs(&d.origin, "the script gets the client's query only");
    }
    if matcher.paths.is_empty() {
        if script != "/index.php" {
            context.front = Some((script.to_owned(), d.origin.clone()));
        }
        return;
    }
    let mut block = context.block(matcher, d);
    block.set("fallback", Value::text(script), &d.origin);
    context.blocks.push(block);
}

fn tls(context: &mut Context<'_>, draft: &mut Draft, d: &Directive) {
    match d.args.as_slice() {
        [internal] if internal == "internal" => {
            context.is_internal_tls = true;
            draft.missing(
                &d.origin,
                "no local authority: create a certificate, for example with mkcert",
            );
        }
        [email] if email.contains('@') => {
            draft.set("acme", "email", Value::text(email), &d.origin);
        }
        [certificate, key] => {
            context.has_certificate = true;
            draft.add("tls", "certificates", &resolved(context.file, certificate), &d.origin);
            draft.add("tls", "keys", &resolved(context.file, key), &d.origin);
        }
        _ => {}
    }
    for inner in d.inner() {
        match (inner.name.as_str(), inner.arg(0)) {
            ("protocols", "tls1.3") => {
                draft.set("tls", "min_version", Value::text("1.3"), &inner.origin);
            }
            ("protocols" | "ciphers" | "curves" | "alpn", _) => {
                draft.built_in(&inner.origin, "not needed");
            }
            ("client_auth", _) => access::client_auth(context, draft, inner),
            ("ca", url) => draft.set("acme", "directory", Value::text(url), &inner.origin),
            _ => draft.missing(&inner.origin, "there is no setting like it"),
        }
    }
}
