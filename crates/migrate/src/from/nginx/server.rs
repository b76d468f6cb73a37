//! Servers of nginx → listeners, sites and redirects.

use super::access::Controls;
use super::directives::{self, Scope};
use super::location;
use super::place::{Context, Front, Rank};
use super::responses;
use super::site::{self, Site, Upstreams, names};
use crate::from::directive::Directive;
use crate::from::draft::{Block, Draft, Kind, Value};
use crate::from::glob::is_match;
use crate::from::origin::Origin;
use crate::from::shared::{is_script, join};

/// Folder of a relative `root`.
const PREFIX: &str = "/usr/share/nginx";
/// Maximum length of a pool's name.
const NAME_CHARS_MAX: usize = 32;

/// An address of `listen`.
struct Listen {
    address: String,
    origin: Origin,
    /// All its servers redirect to HTTPS.
    is_redirect: bool,
}

/// Converts the whole configuration.
pub(super) fn convert(draft: &mut Draft, tree: &[Directive]) -> Vec<Site> {
    let (mut servers, mut http) = (Vec::new(), Vec::new());
    for d in tree {
        match d.name.as_str() {
            "http" => {
                for inner in d.inner() {
                    let list = if inner.name == "server" { &mut servers } else { &mut http };
                    list.push(inner);
                }
            }
            "server" => servers.push(d),
            "location" => draft.missing(&d.origin, "pass the file with its `server`"),
            _ => http.push(d),
        }
    }
    let upstreams = site::upstreams(&http);
    let http_root = http.iter().find(|d| d.name == "root").map(|root| root.arg(0).to_owned());
    let controls = Controls::of_all(&http);
    let (apps, others): (Vec<&Directive>, Vec<&Directive>) =
        servers.iter().copied().partition(|server| is_application(server));
    let main = apps.iter().position(|server| has(server, "fastcgi_pass")).unwrap_or(0);
    let mut listens: Vec<Listen> = Vec::new();
    let mut of_main = 0..0;
    let mut sites = Vec::new();
    // The general settings are those of the first site.
    let mut order: Vec<usize> = (0..apps.len()).collect();
    order.sort_by_key(|number| *number != main);
    for number in order {
        let (server, is_main) = (apps[number], number == main);
        let hosts = if apps.len() > 1 { names(server) } else { Vec::new() };
        listen(draft, server, &mut listens, false);
        let first = draft.blocks.len();
        if !is_main && hosts.is_empty() {
            draft.missing(&server.origin, "a further site needs a `server_name`");
            continue;
        }
        sites.push(site(
            draft,
            server,
            hosts,
            is_main,
            (http_root.as_deref(), &controls),
            &upstreams,
        ));
        if is_main {
            of_main = first..draft.blocks.len();
        }
    }
    for server in others {
        redirecting(draft, server, &mut listens);
    }
    let main_server = apps.get(main).map(|server| &server.origin);
    let is_other = |server: &&&Directive| Some(&server.origin) != main_server;
    let others: Vec<Vec<String>> =
        servers.iter().filter(is_other).map(|server| names(server)).collect();
    draft.guard_unknown_hosts(of_main, &others);
    for Listen { address, origin, is_redirect } in listens {
        let redirect = if is_redirect { "?redirect" } else { "" };
        draft.add("", "listen", &format!("{address}{redirect}"), &origin);
    }
    let mut top = http.first().map(|d| Block::location(&[], &[], &d.origin));
    for d in http {
        if let Some(top) = &mut top {
            match d.name.as_str() {
                "root" | "upstream" => {}
                "index" => location::index(draft, d, top),
                _ => directives::convert(draft, top, d, Scope::Http),
            }
        }
    }
    if let Some(top) = top {
        draft.push(top);
    }
    sites
}

/// Whether a server has files or scripts, and does not redirect or refuse all requests.
fn is_application(server: &Directive) -> bool {
    let is_everything = |d: &&Directive| d.args.len() == 1 && d.arg(0) == "/";
    let of_everything = server.all("location").find(is_everything);
    let returns = server.first("return").is_some()
        || of_everything.is_some_and(|location| location.first("return").is_some());
    has(server, "fastcgi_pass")
        || has(server, "proxy_pass")
        || (!returns && (has(server, "root") || has(server, "try_files")))
}

fn has(d: &Directive, name: &str) -> bool {
    d.inner().iter().any(|inner| inner.name == name || has(inner, name))
}

fn listen(draft: &mut Draft, server: &Directive, listens: &mut Vec<Listen>, is_redirect: bool) {
    for d in server.all("listen") {
        let Some(address) = address(draft, d) else { continue };
        match listens.iter_mut().find(|known| known.address == address) {
            Some(known) => known.is_redirect &= is_redirect,
            None => listens.push(Listen { address, origin: d.origin.clone(), is_redirect }),
        }
    }
}

/// `443 ssl http2` → `https://:443`.
fn address(draft: &mut Draft, d: &Directive) -> Option<String> {
    let mut address = d.arg(0).to_owned();
    if address.bytes().all(|byte| byte.is_ascii_digit()) && !address.is_empty() {
        address = format!(":{address}");
    } else if let Some(port) = address.strip_prefix("*:") {
        address = format!(":{port}");
    } else if !address.starts_with("unix:") {
        let has_port = match address.rsplit_once(']') {
            Some((_, rest)) => rest.starts_with(':'),
            None => address.contains(':'),
        };
        if !has_port {
            address.push_str(":80");
        }
    }
    let (mut is_tls, mut is_proxy) = (false, false);
    for option in &d.args[1.min(d.args.len())..] {
        match option.as_str() {
            "ssl" => is_tls = true,
            "proxy_protocol" => is_proxy = true,
            "quic" => {
                draft.missing(&d.origin, "no HTTP/3: use a proxy or a CDN in front");
                return None;
            }
            option => {
                if let Some(backlog) = option.strip_prefix("backlog=") {
                    draft.set("", "listen_backlog", Value::plain(backlog), &d.origin);
                }
            }
        }
    }
    let scheme = if is_tls && !address.starts_with("unix:") { "https://" } else { "" };
    let proxy = if is_proxy { "?proxy" } else { "" };
    Some(format!("{scheme}{address}{proxy}"))
}

/// Converts a site with files or scripts.
fn site(
    draft: &mut Draft,
    server: &Directive,
    hosts: Vec<String>,
    is_main: bool,
    (http_root, outer): (Option<&str>, &Controls),
    groups: &Upstreams,
) -> Site {
    let root = server.first("root").map(|root| root.arg(0)).or(http_root);
    let everything = |d: &&Directive| d.args.len() == 1 && d.arg(0) == "/";
    let root = root.or_else(|| {
        let location = server.all("location").find(everything)?;
        location.first("root").map(|root| root.arg(0))
    });
    let root = root
        .filter(|root| !root.contains('$'))
        .map(|root| if root.starts_with('/') { root.to_owned() } else { join(PREFIX, root) });
    let top = Block::location(&hosts, &[], &server.origin);
    let controls = outer.inside(server);
    let mut context = Context {
        server,
        hosts,
        root,
        is_main,
        top,
        front: None,
        upstream: None,
        groups,
        missing_scripts: None,
        single_scripts: None,
        runs_all_scripts: false,
        controls,
        guarded_front: None,
        guarded_scripts: Vec::new(),
        open_scripts: Vec::new(),
        placed: Vec::new(),
    };
    let root = context.root.clone();
    for d in server.all("location") {
        let controls = context.controls.clone();
        location::convert(&mut context, draft, d, (root.as_deref(), &controls, None), 0);
    }
    directives_of(&mut context, draft);
    let pool = write(&mut context, draft);
    let upstreams =
        context.upstream.iter().flat_map(|name| site::addresses(groups, name)).collect();
    let origin = server.origin.clone();
    context.finish(draft);
    Site { pool, upstreams, origin }
}

/// Directives of the server itself.
fn directives_of(context: &mut Context<'_>, draft: &mut Draft) {
    let scope = if context.is_main { Scope::Main } else { Scope::Block };
    let root = context.root.clone();
    for d in context.server.inner() {
        match d.name.as_str() {
            "location" | "listen" | "root" => {}
            "server_name" => {
                for name in &d.args {
                    if name.starts_with('~') || name.ends_with('*') {
                        draft.missing(&d.origin, "a host is a name or `*.name`");
                    }
                }
                if let Some(name) = names(context.server).first().filter(|_| context.is_main)
                    && !name.contains('*')
                {
                    draft.settings.set("", "server_name", Value::text(name), &d.origin);
                }
            }
            "index" => {
                let mut top =
                    std::mem::replace(&mut context.top, Block::new(Kind::Location, &d.origin));
                location::index(draft, d, &mut top);
                context.top = top;
            }
            "try_files" if context.front.is_none() => {
                let front = responses::fallback(context.server, draft, d);
                context.front = front.map(|front| (front, d.origin.clone()));
            }
            "if" => responses::condition(context, draft, d),
            "rewrite" => responses::rewrite(context, draft, d, None, true),
            "return" => {
                draft.missing(&d.origin, "the server has locations too: write a [[location]]");
            }
            "error_page" => {
                let mut top = context.top.clone();
                location::error_page(context, draft, d, root.as_deref(), &mut top);
                context.top = top;
            }
            _ => directives::convert(draft, &mut context.top, d, scope),
        }
    }
}

/// Writes root and front controller. Returns the number of the pool's block.
fn write(context: &mut Context<'_>, draft: &mut Draft) -> Option<usize> {
    let server = &context.server.origin;
    let root_origin = context.server.first("root").map_or(server, |root| &root.origin).clone();
    let (front, front_origin) = match context.front.take() {
        Some((front, origin)) => (front, origin),
        None => (Front::Nothing, server.clone()),
    };
    guard_scripts(context, draft, &front);
    let mut root = context.root.clone();
    match &front {
        Front::Script(script) if script == "/index.php" => {}
        Front::Script(script) if is_script(script) && !script[1..].contains('/') => {
            root = root.map(|root| join(&root, script));
        }
        Front::Script(path) => context.top.set("fallback", Value::text(path), &front_origin),
        Front::Nothing => context.top.set("fallback", Value::text("none"), &front_origin),
    }
    if let (Some(origin), Front::Script(_)) = (&context.missing_scripts, &front) {
        let mut block = Block::location(&context.hosts, &[String::from("*.php")], origin);
        block.set("fallback", Value::text("none"), origin);
        context.place(Rank::regex(), block);
    }
    if let Some(origin) = &context.single_scripts
        && !context.runs_all_scripts
    {
        let advice = "the other .php files below the root run as well, unless they are denied";
        draft.differs(origin, advice);
    }
    if !context.is_main {
        let names = names(context.server);
        let mut pool = Block::new(Kind::Pool, server);
        pool.set("name", Value::Text(pool_name(draft, &names)), server);
        pool.set("host", Value::List(names), server);
        if let Some(root) = root {
            pool.set("root", Value::Text(root), &root_origin);
        }
        draft.blocks.push(pool);
        return Some(draft.blocks.len() - 1);
    }
    match root {
        Some(root) => draft.set("", "root", Value::Text(root), &root_origin),
        None => draft.missing(server, "set `root`: the server has no constant folder"),
    }
    None
}

/// Denies scripts with controls of access. Controls of the front controller apply to all its paths.
fn guard_scripts(context: &mut Context<'_>, draft: &mut Draft, front: &Front) {
    let is_front = |patterns: &[String]| match front {
        Front::Script(script) => patterns.iter().any(|pattern| is_match(pattern, script)),
        Front::Nothing => false,
    };
    for (patterns, control) in std::mem::take(&mut context.guarded_scripts) {
        if patterns.is_empty() || is_front(&patterns) {
            context.guarded_front.get_or_insert(control);
        } else {
            let mut block = Block::location(&context.hosts, &patterns, &control);
            draft.guard(&mut block, &control);
            context.place(Rank::regex(), block);
        }
    }
    let is_guarded = context.guarded_front.is_some() || context.controls.first().is_some();
    for (patterns, origin) in std::mem::take(&mut context.open_scripts) {
        if is_guarded && !is_front(&patterns) {
            let mut block = Block::location(&context.hosts, &patterns, &origin);
            block.set("deny", Value::plain(false), &origin);
            context.place(Rank::regex(), block);
        }
    }
}

/// A name for a pool that no other pool has.
fn pool_name(draft: &Draft, hosts: &[String]) -> String {
    let host = hosts.first().map_or("site", String::as_str).trim_start_matches("*.");
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let base: String = host
        .chars()
        .map(|c| if is_allowed(c) { c } else { '-' })
        .take(NAME_CHARS_MAX - 4)
        .collect();
    let is_taken = |name: &str| {
        let value = Value::text(name);
        draft.blocks.iter().any(|b| b.entries.get("", "name").is_some_and(|e| e.value == value))
    };
    let numbered = (2..1000).map(|number| format!("{base}-{number}"));
    std::iter::once(base.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or(base)
}

/// A server that only redirects or refuses.
fn redirecting(draft: &mut Draft, server: &Directive, listens: &mut Vec<Listen>) {
    let names = names(server);
    let returned = server
        .first("return")
        .or_else(|| server.all("location").find_map(|location| location.first("return")));
    let rewritten = server.first("rewrite").filter(|rewrite| rewrite.arg(1).contains("://"));
    let target = returned.map(|d| d.args.last().map_or("", String::as_str));
    let target = target.or_else(|| rewritten.map(|d| d.arg(1))).unwrap_or("").to_owned();
    let host = target.strip_prefix("https://").unwrap_or("");
    let host = host.split('/').next().unwrap_or("");
    let host = host.strip_suffix("$request_uri").or(host.strip_suffix("$uri")).unwrap_or(host);
    let is_same = ["$host", "$server_name", "$http_host"].contains(&host);
    let is_own = is_same || names.iter().any(|name| name == host);
    let is_plain = server.all("listen").all(|d| !d.args.iter().any(|option| option == "ssl"));
    listen(draft, server, listens, is_own && is_plain);
    // The other names of the server are redirected to the host; the host itself would be a loop.
    let has_names = !names.is_empty();
    let names: Vec<String> = names.into_iter().filter(|name| name != host).collect();
    if is_plain && (is_same || (is_own && names.is_empty())) {
        return;
    }
    let Some(d) = returned.or(rewritten) else {
        return draft.missing(&server.origin, "the server has no files, scripts or redirect");
    };
    for inner in server.inner().iter().filter(|inner| inner.name.starts_with("ssl_certificate")) {
        let mut unused = Block::location(&[], &[], &inner.origin);
        directives::convert(draft, &mut unused, inner, Scope::Block);
    }
    if names.is_empty() && has_names {
        return draft.missing(&d.origin, "it redirects to itself");
    }
    if names.is_empty() {
        let advice = "requests for unknown hosts go to the first site: check the host in PHP";
        return draft.differs(&d.origin, advice);
    }
    let everything = [String::from("/*")];
    let mut block = Block::location(&names, &everything, &server.origin);
    let context = Context {
        server,
        hosts: names,
        root: None,
        is_main: false,
        top: Block::location(&[], &[], &server.origin),
        front: None,
        upstream: None,
        groups: &Upstreams::new(),
        missing_scripts: None,
        single_scripts: None,
        runs_all_scripts: false,
        controls: Controls::default(),
        guarded_front: None,
        guarded_scripts: Vec::new(),
        open_scripts: Vec::new(),
        placed: Vec::new(),
    };
    if d.name == "return" {
        responses::respond(&context, draft, d, &everything, &mut block);
    } else {
        let target = d.arg(1).replace("/$1", "/*").replace("$1", "*");
        responses::redirect(&context, draft, &d.origin, (301, &target), &everything, &mut block);
    }
    draft.push(block);
}
