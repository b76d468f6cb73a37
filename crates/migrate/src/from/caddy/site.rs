//! Sites of a Caddyfile → listeners, certificates, root, pools.

use super::context::Context;
use super::handler;
use super::matcher::Matcher;
use super::options::{self, Worker};
use crate::from::directive::Directive;
use crate::from::draft::{Block, Draft, Kind, Value};
use crate::from::shared::is_script;
use std::net::IpAddr;
use std::path::Path;

/// An address of a site.
struct Address {
    scheme: String,
    host: String,
    port: String,
}

impl Address {
    fn parse(text: &str) -> Address {
        let text = text.trim_end_matches(',');
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        let rest = rest.split('/').next().unwrap_or(rest);
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (host, port),
            _ => (rest, ""),
        };
        let own = |text: &str| text.to_owned();
        Address { scheme: own(scheme), host: own(host), port: own(port) }
    }

    /// Whether a public authority issues certificates for it.
    fn is_domain(&self) -> bool {
        let is_local = self.host == "localhost"
            || self.host.ends_with(".localhost")
            || self.host.rsplit('.').next() == Some("local");
        self.host.contains('.') && !is_local && self.host.parse::<IpAddr>().is_err()
    }

    fn is_plain(&self) -> bool {
        self.scheme == "http"
            || self.port == "80"
            || (self.host.is_empty() && self.port != "443" && self.scheme != "https")
    }
}

pub(super) fn convert(draft: &mut Draft, file: &Path, tree: &[Directive]) {
    let (options, sites): (Vec<&Directive>, Vec<&Directive>) =
        tree.iter().partition(|d| d.name.is_empty());
    let mut workers = Vec::new();
    for options in options {
        workers.extend(options::convert(draft, file, options));
    }
    let main = sites.iter().position(|site| has_php(site)).unwrap_or(0);
    let is_single = sites.iter().filter(|site| has_php(site)).count() < 2;
    let (mut of_main, mut all_hosts) = (0..0, Vec::new());
    for (number, site) in sites.iter().enumerate() {
        let addresses = addresses(site);
        let is_main = number == main;
        let hosts: Vec<String> = addresses
            .iter()
            .map(|address| address.host.clone())
            .filter(|host| !host.is_empty())
            .collect();
        let is_open = is_main && is_single;
        let own_workers = if is_main { std::mem::take(&mut workers) } else { Vec::new() };
        let own_hosts = if is_open { Vec::new() } else { hosts.clone() };
        let mut context = Context::new(file, own_hosts, own_workers);
        let first = draft.blocks.len();
        handler::convert(&mut context, draft, site.inner(), &Matcher::default(), 0);
        listen(draft, &context, site, &addresses);
        all_hosts.push(hosts.clone());
        finish(draft, context, site, is_main, hosts);
        if is_main {
            of_main = first..draft.blocks.len();
        }
    }
    if main < all_hosts.len() {
        all_hosts.remove(main);
    }
    draft.guard_unknown_hosts(of_main, &all_hosts);
}

fn has_php(site: &Directive) -> bool {
    let is_php = |d: &Directive| matches!(d.name.as_str(), "php_server" | "php_fastcgi" | "php");
    site.inner().iter().any(|d| is_php(d) || has_php(d))
}

fn addresses(site: &Directive) -> Vec<Address> {
    let names = std::iter::once(&site.name).chain(&site.args);
    let parts =
        names.flat_map(|name| name.split(',')).map(str::trim).filter(|part| !part.is_empty());
    parts.map(Address::parse).collect()
}

/// Addresses and certificates.
fn listen(draft: &mut Draft, context: &Context<'_>, site: &Directive, addresses: &[Address]) {
    for address in addresses {
        let origin = &site.origin;
        let port = |default: &str| {
            if address.port.is_empty() { default.to_owned() } else { address.port.clone() }
        };
        let is_number = address.host.parse::<IpAddr>().is_ok();
        let host = if is_number { address.host.as_str() } else { "" };
        if address.is_plain() {
            draft.add("", "listen", &format!("{host}:{}", port("80")), origin);
        } else if context.has_certificate {
            draft.add("", "listen", ":80?redirect", origin);
            draft.add("", "listen", &format!("https://{host}:{}", port("443")), origin);
        } else if address.is_domain() && !context.is_internal_tls {
            if address.host.contains('*') {
                draft.missing(origin, "a certificate for `*` needs the challenge dns");
                continue;
            }
            draft.add("acme", "domains", &address.host, origin);
            if !address.port.is_empty() && address.port != "443" {
                draft.add("", "listen", ":80?redirect", origin);
                draft.add("", "listen", &format!("https://:{}", address.port), origin);
            }
        } else {
            let advice = "no local authority: served over HTTP. Set `listen` and \
                          `tls.certificates` for HTTPS";
            draft.differs(origin, advice);
            draft.add("", "listen", &format!("127.0.0.1:{}", port("8080")), origin);
        }
    }
}

/// Writes root and tables.
fn finish(
    draft: &mut Draft,
    mut context: Context<'_>,
    site: &Directive,
    is_main: bool,
    hosts: Vec<String>,
) {
    let mut root = context.root.take();
    if let Some(Worker { file, directive }) = context.workers.first() {
        let index = root.as_ref().map(|(root, _)| format!("{root}/index.php"));
        if index.as_deref() == Some(file.as_str()) {
            draft.built_in(&directive.origin, "index.php of the root is booted once");
        } else {
            root = Some((file.clone(), directive.origin.clone()));
        }
    }
    for Worker { directive, .. } in context.workers.iter().skip(1) {
        draft.missing(&directive.origin, "a further worker needs a [[pool]]");
    }
    let is_root = |front: &str| root.as_ref().is_some_and(|(root, _)| root.ends_with(front));
    if context.front.as_ref().is_some_and(|(front, _)| is_root(front)) {
        context.front = None;
    }
    match (&context.front, root.take()) {
        (Some((front, _)), Some((folder, origin)))
            if !front[1..].contains('/') && is_script(front) && !is_script(&folder) =>
        {
            root = Some((format!("{folder}{front}"), origin));
        }
        (Some((front, origin)), kept) => {
            root = kept;
            let mut block = Block::location(&context.hosts, &[], origin);
            block.set("fallback", Value::text(front), origin);
            context.blocks.push(block);
        }
        (None, kept) => root = kept,
    }
    let has_files = site.inner().iter().any(|d| d.name == "file_server");
    if !context.has_php && has_files {
        let mut block = Block::location(&context.hosts, &[], &site.origin);
        block.set("fallback", Value::text("none"), &site.origin);
        block.set("scripts", Value::plain(false), &site.origin);
        context.blocks.push(block);
    }
    if is_main {
        match root {
            Some((root, origin)) => draft.set("", "root", Value::Text(root), &origin),
            None => draft.missing(&site.origin, "set `root`: the site has no constant folder"),
        }
    } else if let Some((root, origin)) = root {
        let mut pool = Block::new(Kind::Pool, &site.origin);
        let name: String = hosts.first().map_or("site", String::as_str).chars().take(32).collect();
        pool.set("name", Value::Text(name), &site.origin);
        pool.set("host", Value::List(hosts), &site.origin);
        pool.set("root", Value::Text(root), &origin);
        draft.push(pool);
    }
    // A specific path comes before a general one, as in Caddy.
    let length = |block: &Block| match block.entries.get("", "path").map(|entry| &entry.value) {
        Some(Value::Text(path)) => path.len(),
        Some(Value::List(paths)) => paths.iter().map(String::len).min().unwrap_or(0),
        _ => 0,
    };
    context.blocks.sort_by_key(|block| std::cmp::Reverse(length(block)));
    for block in context.blocks.into_iter().chain(context.last) {
        draft.push(block);
    }
}
