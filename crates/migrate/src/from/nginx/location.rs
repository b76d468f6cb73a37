//! A location of nginx → tables of Samovar.

use super::access::{self, Controls};
use super::directives::{self, Scope};
use super::place::{Context, Front, Rank};
use super::responses::{condition, fallback, respond, rewrite};
use super::site::addresses;
use crate::from::directive::Directive;
use crate::from::draft::{Block, Draft, Value};
use crate::from::glob;
use crate::from::origin::Origin;
use crate::from::shared::{is_script, join, script_and_query};

/// Maximum depth of locations in locations.
const DEPTH_MAX: usize = 8;

/// Paths of a location.
struct Matched {
    rank: Rank,
    patterns: Vec<String>,
    /// A prefix such as `/x/`; empty for `/`, exact paths and regular expressions.
    prefix: Option<String>,
    is_regex: bool,
}

/// Converts a location. `root` is the folder of the block around it.
pub(super) fn convert(
    context: &mut Context<'_>,
    draft: &mut Draft,
    d: &Directive,
    (root, outer, prefix): (Option<&str>, &Controls, Option<&str>),
    depth: usize,
) {
    if depth > DEPTH_MAX {
        return draft.missing(&d.origin, "locations are nested too deep");
    }
    let controls = outer.inside(d);
    let own_root = d.first("root").map(|root| root.arg(0).to_owned());
    let root_here = own_root.as_deref().or(root);
    let own_prefix = Some(d.arg(d.args.len().saturating_sub(1)))
        .filter(|path| path.len() > 1 && path.starts_with('/') && !d.arg(0).starts_with('~'));
    let prefix_here = own_prefix.or(prefix);
    for inner in d.all("location") {
        convert(context, draft, inner, (root_here, &controls, prefix_here), depth + 1);
    }
    // The server's controls apply to all its locations. They have no notes of their own.
    let is_own = controls != context.controls;
    let control = controls.first().filter(|_| is_own);
    if d.arg(0).starts_with('@') {
        if let Some(control) = control {
            context.guarded_front.get_or_insert(control.clone());
        }
        return;
    }
    let Some(place) = place(draft, d, prefix) else {
        if let Some(control) = control {
            guard_expression(context, draft, d, control);
        }
        return;
    };
    if is_hidden_files(d) && is_refused(d) && place.patterns.iter().all(|p| is_hidden(p)) {
        return draft.built_in(&d.origin, "hidden files are never served (404)");
    }
    if d.first("fastcgi_pass").is_some() {
        if let Some(control) = control {
            context.guarded_scripts.push((place.patterns.clone(), control.clone()));
        } else if let Some(control) = controls.first() {
            let mut block = Block::location(&context.hosts, &place.patterns, control);
            block.set("deny", Value::plain(true), control);
            context.place(Rank::regex(), block);
        } else if d.first("internal").is_none() {
            context.open_scripts.push((place.patterns.clone(), d.origin.clone()));
        }
        return scripts(context, draft, d, &place, control);
    }
    let is_everything = place.patterns.is_empty();
    if !is_everything
        && place.is_regex
        && is_refused(d)
        && refuse_scripts(context, draft, d, &place)
    {
        return;
    }
    let mut block = Block::location(&context.hosts, &place.patterns, &d.origin);
    if let Some(own) = &own_root {
        folder(context, draft, d, &place, own, &mut block);
    }
    body(context, draft, d, &place, root_here, &mut block);
    if let Some(control) = control {
        if is_everything {
            context.guarded_front.get_or_insert(control.clone());
        } else if !is_refused(d) {
            block.entries.0.retain(|entry| entry.key != "deny");
            draft.guard(&mut block, control);
        }
    } else if let Some(control) = controls.first().filter(|_| !is_everything) {
        block.set("deny", Value::plain(true), control);
    } else if controls.first().is_none() && context.controls.first().is_some() {
        block.set("deny", Value::plain(false), &d.origin);
    }
    if is_everything {
        merge(&mut context.top, block);
    } else {
        files_only(d, &mut block);
        context.place(place.rank, block);
    }
}

/// A protected location whose regular expression has no patterns.
fn guard_expression(context: &mut Context<'_>, draft: &mut Draft, d: &Directive, control: &Origin) {
    let regex = d.args.last().map_or("", String::as_str);
    match access::constant_start(regex.trim_start_matches(['~', '*'])) {
        Some(start) => {
            let mut block = Block::location(&context.hosts, &[format!("{start}*")], &d.origin);
            draft.guard(&mut block, control);
            context.place(Rank::regex(), block);
        }
        None => draft.missing(
            control,
            "the paths are open now: write a [[location]] with `deny = true` for them",
        ),
    }
}

/// nginx responds with 404 for a missing file of a location without `try_files`.
fn files_only(d: &Directive, block: &mut Block) {
    let other = ["try_files", "proxy_pass", "internal", "return", "rewrite", "if", "error_page"];
    let is_code = |inner: &Directive| inner.name.contains("_by_lua");
    let has_other =
        d.inner().iter().any(|inner| other.contains(&inner.name.as_str()) || is_code(inner));
    let ends = ["deny", "redirect", "status", "alias", "fallback"];
    if !has_other && ends.iter().all(|key| block.entries.get("", key).is_none()) {
        block.set("fallback", Value::text("none"), &d.origin);
    }
}

/// Adds the keys of a table without paths to that of the server. The keys of the location apply.
fn merge(top: &mut Block, block: Block) {
    for entry in block.entries.0 {
        if let Some(known) = top.entries.0.iter_mut().find(|known| known.key == entry.key) {
            if known.key != "host" {
                *known = entry;
            }
        } else {
            top.entries.0.push(entry);
        }
    }
}

/// Reads `= /x`, `^~ /x/`, `~* \.css$` or `/x/`.
fn place(draft: &mut Draft, d: &Directive, outer: Option<&str>) -> Option<Matched> {
    let (mark, text) = match d.args.as_slice() {
        [mark, text] => (mark.as_str(), text.as_str()),
        [one] => {
            let mark = ["~*", "^~", "=", "~"].into_iter().find(|mark| one.starts_with(mark));
            (mark.unwrap_or(""), one.strip_prefix(mark.unwrap_or("")).unwrap_or(one))
        }
        _ => ("", ""),
    };
    let plain = |rank, patterns, prefix| Some(Matched { rank, patterns, prefix, is_regex: false });
    match mark {
        _ if !text.starts_with('/') && !mark.starts_with('~') => {
            draft.missing(&d.origin, "the path does not begin with `/`");
            None
        }
        "=" => plain(Rank::exact(), vec![text.to_owned()], None),
        "~" | "~*" => match glob::patterns(text) {
            Some(patterns) => {
                let patterns = patterns.into_iter().map(|pattern| inside(outer, pattern)).collect();
                Some(Matched { rank: Rank::regex(), patterns, prefix: None, is_regex: true })
            }
            None if is_hidden_files(d) && !access::has_outer_alternative(text) => Some(Matched {
                rank: Rank::regex(),
                patterns: vec![],
                prefix: None,
                is_regex: true,
            }),
            None => {
                let advice = "the expression is no list of patterns: write `path` of a \
                              [[location]] with `*`";
                draft.missing(&d.origin, advice);
                None
            }
        },
        _ if text == "/" => plain(Rank::server(), Vec::new(), None),
        _ => {
            let rank = Rank::prefix(text, mark == "^~");
            plain(rank, vec![format!("{text}*")], Some(text.to_owned()))
        }
    }
}

/// A pattern of a location inside one with a prefix.
fn inside(outer: Option<&str>, pattern: String) -> String {
    let Some(outer) = outer.filter(|outer| !pattern.starts_with(outer)) else { return pattern };
    match pattern.strip_prefix('/').unwrap_or(&pattern).strip_prefix('*') {
        Some(rest) => format!("{outer}*{rest}"),
        // It begins with a path that is outside, or matches a name in any folder.
        None if pattern.starts_with('/') => pattern,
        None => format!("{outer}*{pattern}"),
    }
}

/// Whether all paths of a pattern are hidden files.
fn is_hidden(pattern: &str) -> bool {
    pattern.split('/').any(|part| part.starts_with('.'))
}

/// Whether a regular expression is about hidden files.
fn is_hidden_files(d: &Directive) -> bool {
    let text = d.args.last().map_or("", String::as_str);
    let text = text.trim_start_matches('~').trim_start_matches('*').trim_start_matches('^');
    d.arg(0).starts_with('~')
        && ["/\\.", "(^|/)\\.", "/(\\.", "(?:^|/)\\."].iter().any(|start| text.starts_with(start))
        || matches!(text, "\\.ht" | "/.ht" | "\\.git")
}

/// Whether all requests are refused.
fn is_refused(d: &Directive) -> bool {
    let is_status = |status: &str| matches!(status, "403" | "404" | "444");
    let is_denied = |inner: &Directive| match inner.name.as_str() {
        "deny" => inner.arg(0) == "all",
        "return" => is_status(inner.arg(0)),
        _ => false,
    };
    d.inner().iter().any(is_denied) && d.first("allow").is_none()
}

/// A rule about scripts in folders, such as uploads. Returns whether it was one.
fn refuse_scripts(
    context: &mut Context<'_>,
    draft: &mut Draft,
    d: &Directive,
    place: &Matched,
) -> bool {
    let folder = |pattern: &String| {
        let end = pattern.find("*.php").or_else(|| pattern.find("*.ph*"))?;
        let is_folder = pattern[..end].ends_with('/');
        (is_folder && pattern.len() <= end + "*.php/*".len()).then(|| pattern[..=end].to_owned())
    };
    if place.patterns.iter().any(|pattern| pattern == "*.php" || pattern == "/*.php/*") {
        let mut block = Block::location(&context.hosts, &place.patterns, &d.origin);
        block.set("deny", Value::plain(true), &d.origin);
        draft.differs(&d.origin, "scripts that the URL names get 403; the front controller runs");
        context.place(Rank::regex(), block);
        return true;
    }
    let folders: Option<Vec<String>> = place.patterns.iter().map(folder).collect();
    let Some(folders) = folders else { return false };
    let mut block = Block::location(&context.hosts, &folders, &d.origin);
    block.set("scripts", Value::plain(false), &d.origin);
    context.place(Rank::regex(), block);
    true
}

/// `root` of a location: the folder of a tool, or of shared files.
fn folder(
    context: &Context<'_>,
    draft: &mut Draft,
    d: &Directive,
    place: &Matched,
    root: &str,
    block: &mut Block,
) {
    if Some(root) == context.root.as_deref() {
        return;
    }
    let origin = d.first("root").map_or(&d.origin, |root| &root.origin);
    match place.prefix.as_deref() {
        Some(prefix) if !root.contains('$') => alias(block, prefix, &join(root, prefix), origin),
        _ if context.root.is_none() && place.patterns.is_empty() => {}
        _ => draft.missing(origin, "a folder needs a prefix: write `path = \"/x/*\"` and `alias`"),
    }
}

fn alias(block: &mut Block, prefix: &str, folder: &str, origin: &Origin) {
    let path = format!("{}/*", prefix.trim_end_matches('/'));
    for entry in &mut block.entries.0 {
        if entry.key == "path" {
            entry.value = Value::Text(path.clone());
        }
    }
    block.set("alias", Value::text(folder), origin);
}

fn body(
    context: &mut Context<'_>,
    draft: &mut Draft,
    d: &Directive,
    place: &Matched,
    root: Option<&str>,
    block: &mut Block,
) {
    let is_everything = place.patterns.is_empty();
    let scope = match (is_everything, context.is_main) {
        (true, true) => Scope::Main,
        _ => Scope::Block,
    };
    for inner in d.inner() {
        let origin = &inner.origin;
        match inner.name.as_str() {
            "location" | "root" => {}
            "alias" => match place.prefix.as_deref() {
                Some(_) if d.first("internal").is_some() => {}
                Some(prefix) if !inner.arg(0).contains('$') => {
                    alias(block, prefix, inner.arg(0).trim_end_matches('/'), origin);
                }
                _ => draft.missing(origin, "`alias` needs a folder and a prefix such as /x/"),
            },
            "deny" | "return" if is_everything => {
                let advice = "only paths without a file get 404: move other files out of the root";
                draft.missing(origin, advice);
                context.front.get_or_insert((Front::Nothing, origin.clone()));
            }
            "deny" if inner.arg(0) == "all" => {
                block.set("deny", Value::plain(true), origin);
            }
            "internal" => internal(draft, d, place, root, (origin, &mut *block)),
            "return" => respond(context, draft, inner, &place.patterns, block),
            "rewrite" => rewrite(context, draft, inner, Some(&mut *block), is_everything),
            "try_files" => {
                let front = fallback(context.server, draft, inner);
                if is_everything {
                    context.front = front.map(|front| (front, origin.clone()));
                } else if let Some(front) = front {
                    block.set("fallback", fallback_value(&front), origin);
                }
            }
            "index" => index(draft, inner, block),
            "if" => condition(context, draft, inner),
            "error_page" => error_page(context, draft, inner, root, block),
            _ => directives::convert(draft, block, inner, scope),
        }
    }
}

fn fallback_value(front: &Front) -> Value {
    match front {
        Front::Nothing => Value::text("none"),
        Front::Script(path) => Value::text(path),
    }
}

/// Files that only PHP may have the server send.
fn internal(
    draft: &mut Draft,
    d: &Directive,
    place: &Matched,
    root: Option<&str>,
    (origin, block): (&Origin, &mut Block),
) {
    let alias = d.first("alias").map(|alias| alias.arg(0).trim_end_matches('/').to_owned());
    let folder = |prefix: &str| {
        let below = root.filter(|root| !root.contains('$')).map(|root| join(root, prefix));
        alias.clone().filter(|folder| !folder.contains('$')).or(below)
    };
    match place.prefix.as_deref() {
        Some(prefix) => {
            if let Some(folder) = folder(prefix) {
                draft.set("sendfile", prefix, Value::Text(folder), origin);
            }
            if alias.is_none() {
                block.set("deny", Value::plain(true), origin);
                draft.differs(origin, "a URL that names one of the files gets 403, not 404");
            }
        }
        None if is_refused(d) => {}
        None => {
            block.set("deny", Value::plain(true), origin);
            draft.differs(origin, "a URL that names one of the files gets 403, not 404");
        }
    }
}

pub(super) fn index(draft: &mut Draft, d: &Directive, block: &mut Block) {
    let is_name = |name: &&String| !name.contains(['/', '$', '*']) && !name.starts_with('.');
    let names: Vec<String> = d.args.iter().filter(is_name).cloned().collect();
    if names.len() != d.args.len() {
        draft.differs(&d.origin, "index files are names without `/` and variables");
    }
    if names == ["index.php", "index.html"] {
        draft.built_in(&d.origin, "it is the default");
    } else if !names.is_empty() {
        block.set("index", Value::List(names), &d.origin);
    }
}

pub(super) fn error_page(
    context: &Context<'_>,
    draft: &mut Draft,
    d: &Directive,
    root: Option<&str>,
    block: &mut Block,
) {
    let Some((page, statuses)) = d.args.split_last() else { return };
    let is_changed = statuses.iter().any(|status| status.starts_with('='));
    let (path, _) = script_and_query(page);
    if page.starts_with('@') || is_changed || !path.starts_with('/') || page.contains('$') {
        return draft.missing(&d.origin, "error pages are files: `error_pages` of a [[location]]");
    }
    if is_script(path) {
        let front = "paths without a file go to the front controller, and other errors have \
                     files: `error_pages`";
        return draft.differs(&d.origin, front);
    }
    let is_page = |location: &&Directive| location.args.last().is_some_and(|last| last == path);
    let own = context.server.all("location").find(is_page).and_then(|found| found.first("root"));
    let Some(root) = own.map(|root| root.arg(0)).or(root) else {
        return draft.missing(&d.origin, "the folder of the page is unknown");
    };
    for status in statuses {
        block.entries.pair("error_pages", status, &join(root, path), &d.origin);
    }
}

/// A location that passes scripts to php-fpm.
fn scripts(
    context: &mut Context<'_>,
    draft: &mut Draft,
    d: &Directive,
    place: &Matched,
    control: Option<&Origin>,
) {
    let pass = d.first("fastcgi_pass").expect("the caller has found it");
    let upstream = pass.arg(0).to_owned();
    let is_php = |pattern: &String| pattern.contains(".php") || pattern.contains(".ph*");
    let all = ["*.php", "/*.php/*", "/*.php*", "/*.php", "/*.ph*"];
    let is_all = place.patterns.iter().any(|pattern| all.contains(&pattern.as_str()));
    let is_other = context.upstream.as_ref().is_some_and(|known| *known != upstream);
    if !is_all && !place.patterns.is_empty() && !place.patterns.iter().all(is_php) {
        if let Some(script) = script_filename(d) {
            let mut block = Block::location(&context.hosts, &place.patterns, &d.origin);
            block.set("fallback", Value::Text(script), &d.origin);
            if let Some(control) = control {
                draft.guard(&mut block, control);
            }
            return context.place(place.rank, block);
        }
        let advice = "the workers run scripts only; for php-fpm's status page use `admin`";
        return draft.missing(&pass.origin, advice);
    }
    if is_other && !is_all {
        let targets = addresses(context.groups, &upstream);
        let mut block = Block::location(&context.hosts, &place.patterns, &d.origin);
        let value =
            if targets.len() == 1 { Value::text(&targets[0]) } else { Value::List(targets) };
        block.set("fastcgi_pass", value, &pass.origin);
        if let Some(control) = control {
            draft.guard(&mut block, control);
        }
        draft
            .differs(&pass.origin, "another php-fpm still runs these scripts: consider a [[pool]]");
        return context.place(place.rank, block);
    }
    draft.built_in(&pass.origin, "the workers run the scripts");
    context.upstream = Some(upstream);
    if place.patterns.is_empty() {
        let script = script_filename(d).unwrap_or_else(|| String::from("/index.php"));
        context.front = Some((Front::Script(script), d.origin.clone()));
    } else if is_all {
        context.runs_all_scripts = true;
        context.missing_scripts = Some(d.origin.clone());
    } else {
        context.single_scripts = Some(d.origin.clone());
        if let Some(internal) = d.first("internal") {
            let mut block = Block::location(&context.hosts, &place.patterns, &d.origin);
            block.set("deny", Value::plain(true), &internal.origin);
            let advice = "a URL that names the front controller gets 403, not 404";
            draft.differs(&internal.origin, advice);
            context.place(place.rank, block);
        }
    }
    let scope = if context.is_main { Scope::Main } else { Scope::Block };
    for inner in d.inner() {
        match inner.name.as_str() {
            "fastcgi_pass" | "internal" | "root" | "location" | "fastcgi_index" => {}
            "try_files" => {
                if let Some(front @ Front::Script(_)) = fallback(context.server, draft, inner) {
                    context.missing_scripts = None;
                    context.front.get_or_insert((front, inner.origin.clone()));
                }
            }
            "if" => draft.built_in(&inner.origin, "missing scripts get 404"),
            "deny" | "allow" | "return" | "rewrite" => {
                draft.missing(&inner.origin, "write a [[location]] for these scripts");
            }
            "error_page" => {
                let root = context.root.clone();
                let mut top = context.top.clone();
                error_page(context, draft, inner, root.as_deref(), &mut top);
                context.top = top;
            }
            _ => directives::convert(draft, &mut context.top, inner, scope),
        }
    }
}

/// The only script of a location.
fn script_filename(d: &Directive) -> Option<String> {
    let param = d.all("fastcgi_param").find(|param| param.arg(0) == "SCRIPT_FILENAME")?;
    let file = param.arg(1);
    let file =
        file.strip_prefix("$document_root").or_else(|| file.strip_prefix("$realpath_root"))?;
    (is_script(file) && !file.contains('$')).then(|| join("", file))
}
