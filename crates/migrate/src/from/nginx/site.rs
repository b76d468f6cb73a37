//! A server of nginx that serves an application: hosts, and groups of php-fpm servers.

use crate::from::directive::Directive;
use crate::from::origin::Origin;
use std::collections::BTreeMap;

/// Groups of servers by the name of their `upstream`.
pub(super) type Upstreams = BTreeMap<String, Vec<String>>;

/// A site: its hosts, and the php-fpm that runs its scripts.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// Number of its `[[pool]]` among the blocks; `None`: the site has the general settings.
    pub(crate) pool: Option<usize>,
    /// Addresses of its `fastcgi_pass`, as in the file.
    pub(crate) upstreams: Vec<String>,
    /// Its `server`.
    pub(crate) origin: Origin,
}

/// Reads the blocks `upstream`.
pub(super) fn upstreams(http: &[&Directive]) -> Upstreams {
    let groups = http.iter().filter(|d| d.name == "upstream");
    let servers = |d: &&Directive| d.all("server").map(|server| server.arg(0).to_owned()).collect();
    groups.map(|d| (d.arg(0).to_owned(), servers(d))).collect()
}

/// Addresses of a `fastcgi_pass`.
pub(super) fn addresses(groups: &Upstreams, name: &str) -> Vec<String> {
    groups.get(name).cloned().unwrap_or_else(|| vec![name.to_owned()])
}

/// Hosts of a server: exact names and `*.name`.
pub(super) fn names(server: &Directive) -> Vec<String> {
    let mut names = Vec::new();
    for name in server.all("server_name").flat_map(|d| &d.args) {
        if let Some(domain) = name.strip_prefix('.') {
            names.extend([domain.to_owned(), format!("*.{domain}")]);
        } else if !name.is_empty() && name != "_" && !name.starts_with('~') && !name.ends_with('*')
        {
            names.push(name.clone());
        }
    }
    names
}
