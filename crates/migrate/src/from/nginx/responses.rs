//! Responses of nginx without a file: `return`, `rewrite`, `try_files`, `if` → redirects, statuses,
//! front controllers.

use super::directives::{self, Scope};
use super::place::{Context, Front, Rank};
use super::site::names;
use crate::from::directive::Directive;
use crate::from::draft::{Block, Draft, Value};
use crate::from::glob;
use crate::from::origin::Origin;
use crate::from::shared::{is_script, script_and_query};

/// Paths with which a query is passed unchanged.
const WHOLE_QUERY: [&str; 5] =
    ["", "$is_args$args", "$args", "$query_string", "$is_args$query_string"];

/// `return`: a redirect, or a status.
pub(super) fn respond(
    context: &Context<'_>,
    draft: &mut Draft,
    d: &Directive,
    patterns: &[String],
    block: &mut Block,
) {
    let (status, target) = match (d.arg(0).parse::<u16>(), d.args.get(1)) {
        (Ok(status), target) => (status, target.map(String::as_str)),
        (Err(_), None) => (302, Some(d.arg(0))),
        (Err(_), Some(_)) => return draft.missing(&d.origin, "it is no status"),
    };
    match (status, target) {
        (301 | 302 | 303 | 307 | 308, Some(target)) => {
            redirect(context, draft, &d.origin, (status, target), patterns, block);
        }
        (403, _) => block.set("deny", Value::plain(true), &d.origin),
        (444, _) => {
            draft.differs(&d.origin, "the response is 403; the connection is not cut");
            block.set("deny", Value::plain(true), &d.origin);
        }
        (400..=599, text) => {
            if text.is_some() {
                draft.differs(&d.origin, "the text is not sent: use `error_pages`");
            }
            block.set("status", Value::plain(status), &d.origin);
        }
        _ => draft.missing(&d.origin, "a text is no response: write a file or a script"),
    }
}

/// Sets a redirect whose target may contain nginx's variables.
pub(super) fn redirect(
    context: &Context<'_>,
    draft: &mut Draft,
    origin: &Origin,
    (status, target): (u16, &str),
    patterns: &[String],
    block: &mut Block,
) {
    let mut to = target.replace("$scheme://", "https://");
    let names = names(context.server);
    if let Some(name) = names.first() {
        to = to.replace("$server_name", name);
    }
    for whole in ["$request_uri", "$uri$is_args$args", "$uri"] {
        if let Some(before) = to.strip_suffix(whole) {
            // The text that `*` matches is the path without the part before it.
            let path = match patterns {
                [] => String::from("/*"),
                [one] => one.clone(),
                _ => return draft.missing(origin, "a redirect needs one pattern"),
            };
            to = format!("{before}{path}");
            break;
        }
    }
    if to.ends_with('?') {
        draft.differs(origin, "the query is kept");
        to.pop();
    }
    if to.contains('$') {
        let advice = "a target has no variables but the rest of the path: redirect in PHP, or \
                      write a [[location]] per host";
        return draft.missing(origin, advice);
    }
    if patterns.is_empty() && block.entries.get("", "path").is_none() {
        block.set("path", Value::text("/*"), origin);
    }
    block.set("redirect", Value::Text(to), origin);
    if status != 301 {
        block.set("status", Value::plain(status), origin);
    }
}

/// `rewrite`: a redirect, or the front controller.
pub(super) fn rewrite(
    context: &mut Context<'_>,
    draft: &mut Draft,
    d: &Directive,
    block: Option<&mut Block>,
    is_everything: bool,
) {
    let (regex, target, flag) = (d.arg(0), d.arg(1), d.arg(2));
    let is_all = matches!(
        regex,
        "^" | "^/" | ".*" | "^.*$" | "^(.*)$" | "^/(.*)$" | "^(.*)" | "^/(.*)" | "(.*)" | "/"
    );
    let is_url = target.starts_with("http://")
        || target.starts_with("https://")
        || target.starts_with("$scheme");
    if flag == "permanent" || flag == "redirect" || is_url {
        let patterns = if is_all { Some(vec![String::from("/*")]) } else { glob::patterns(regex) };
        let one = patterns.filter(|patterns| patterns.len() == 1);
        let Some(patterns) = one else {
            return draft.missing(&d.origin, "the expression is no single pattern with one `*`");
        };
        let star = if is_all && !regex.contains('/') && target.contains("$1") {
            // `$1` has the leading slash.
            target.replace("/$1", "/*").replace("$1", "/*")
        } else {
            target.replace("$1", "*")
        };
        let mut own = Block::location(&context.hosts, &patterns, &d.origin);
        let status = if flag == "permanent" { 301 } else { 302 };
        redirect(context, draft, &d.origin, (status, &star), &patterns, &mut own);
        return context.place(Rank::regex(), own);
    }
    let (script, query) = script_and_query(target);
    if !is_script(script) || !script.starts_with('/') {
        let advice = "paths are not rewritten: let the front controller read REQUEST_URI";
        return draft.missing(&d.origin, advice);
    }
    note_query(draft, &d.origin, query);
    if is_all && (is_everything || block.is_none()) {
        context.front = Some((Front::Script(script.to_owned()), d.origin.clone()));
    } else if let Some(block) = block.filter(|_| is_all) {
        block.set("fallback", Value::text(script), &d.origin);
    } else {
        match glob::patterns(regex) {
            Some(patterns) => {
                let mut own = Block::location(&context.hosts, &patterns, &d.origin);
                own.set("fallback", Value::text(script), &d.origin);
                context.place(Rank::regex(), own);
            }
            None => draft.missing(&d.origin, "the expression is no list of patterns"),
        }
    }
}

fn note_query(draft: &mut Draft, origin: &Origin, query: &str) {
    if !WHOLE_QUERY.contains(&query) {
        let advice = "the script gets the client's query only: it reads the path in REQUEST_URI";
        draft.differs(origin, advice);
    }
}

/// The last argument of `try_files`.
pub(super) fn fallback(server: &Directive, draft: &mut Draft, d: &Directive) -> Option<Front> {
    let (last, files) = d.args.split_last()?;
    if let Some(file) = files.iter().find(|file| {
        !matches!(file.as_str(), "$uri" | "$uri/" | "$document_root$uri" | "$fastcgi_script_name")
    }) {
        draft.missing(&d.origin, format!("only the path itself is searched, not `{file}`"));
    }
    if let Some(status) = last.strip_prefix('=') {
        if status != "404" {
            draft.differs(&d.origin, "the status is 404");
        }
        return Some(Front::Nothing);
    }
    if last.starts_with('@') {
        return named(server, draft, last, &d.origin);
    }
    let (script, query) = script_and_query(last);
    if script.len() < 2 || !script.starts_with('/') || script.ends_with('/') {
        if !matches!(last.as_str(), "$uri" | "$uri/") {
            draft.missing(&d.origin, "the last file is no constant path");
        }
        return Some(Front::Nothing);
    }
    note_query(draft, &d.origin, query);
    Some(Front::Script(script.to_owned()))
}

/// A named location that runs a script.
fn named(server: &Directive, draft: &mut Draft, name: &str, origin: &Origin) -> Option<Front> {
    let found = server.all("location").find(|location| location.arg(0) == name)?;
    for inner in found.inner() {
        let target = match inner.name.as_str() {
            "rewrite" => inner.arg(1),
            "fastcgi_param" if inner.arg(0) == "SCRIPT_FILENAME" => {
                let file = inner.arg(1);
                file.strip_prefix("$document_root")
                    .or_else(|| file.strip_prefix("$realpath_root"))
                    .unwrap_or("")
            }
            "try_files" => inner.args.last().map_or("", String::as_str),
            _ => continue,
        };
        let (script, query) = script_and_query(target);
        if script.starts_with('/') && is_script(script) {
            note_query(draft, &inner.origin, query);
            return Some(Front::Script(script.to_owned()));
        }
    }
    draft.missing(origin, format!("`{name}` runs no script"));
    for inner in found.inner() {
        let mut unused = Block::location(&[], &[], &inner.origin);
        directives::convert(draft, &mut unused, inner, Scope::Block);
    }
    None
}

/// `if`: the usual conditions of front controllers.
pub(super) fn condition(context: &mut Context<'_>, draft: &mut Draft, d: &Directive) {
    let text = d.args.join(" ");
    let text = text.trim_start_matches('(').trim_end_matches(')').trim();
    if matches!(text, "!-e $request_filename" | "!-f $request_filename" | "!-d $request_filename") {
        for inner in d.inner() {
            match inner.name.as_str() {
                "rewrite" => rewrite(context, draft, inner, None, true),
                "break" => {}
                _ => draft.missing(&inner.origin, "no conditions: decide it in PHP"),
            }
        }
        return;
    }
    let host = text.strip_prefix("$host = ").or_else(|| text.strip_prefix("$http_host = "));
    if let (Some(host), Some(inner)) = (host, d.first("return")) {
        let target = inner.arg(1);
        if target.starts_with("https://$host") {
            return draft.built_in(&inner.origin, "a listener with `?redirect` redirects to HTTPS");
        }
        let mut block = Block::location(&[host.to_owned()], &[String::from("/*")], &d.origin);
        respond(context, draft, inner, &[String::from("/*")], &mut block);
        return context.place(Rank::exact(), block);
    }
    if text.starts_with("$scheme") || text.starts_with("$https") {
        return draft.differs(&d.origin, "redirect to HTTPS with `listen = [\":80?redirect\"]`");
    }
    draft.missing(&d.origin, "no conditions: decide it in PHP, or with `host` and `path`");
}
