//! A site while it is converted.

use super::matcher::{Matcher, Named};
use super::options::Worker;
use crate::from::directive::Directive;
use crate::from::draft::Block;
use crate::from::origin::Origin;
use std::path::Path;

/// A site while it is converted.
pub(super) struct Context<'a> {
    pub(super) file: &'a Path,
    /// Hosts of its tables; empty: every host.
    pub(super) hosts: Vec<String>,
    pub(super) root: Option<(String, Origin)>,
    pub(super) workers: Vec<Worker>,
    pub(super) has_php: bool,
    /// Script for paths without a file, if it is not index.php.
    pub(super) front: Option<(String, Origin)>,
    pub(super) has_certificate: bool,
    pub(super) is_internal_tls: bool,
    pub(super) blocks: Vec<Block>,
    /// Tables that follow all others: a denial with exceptions.
    pub(super) last: Vec<Block>,
    pub(super) named: Named,
    /// Directives that define these matchers.
    pub(super) definitions: Vec<Directive>,
    /// Part of the path that the outer blocks have removed.
    pub(super) prefix: String,
}

impl<'a> Context<'a> {
    /// Creates the context of a site. `hosts`: the hosts of its tables.
    pub(super) fn new(file: &'a Path, hosts: Vec<String>, workers: Vec<Worker>) -> Context<'a> {
        Context {
            file,
            hosts,
            root: None,
            workers,
            has_php: false,
            front: None,
            has_certificate: false,
            is_internal_tls: false,
            blocks: Vec::new(),
            last: Vec::new(),
            named: Named::new(),
            definitions: Vec::new(),
            prefix: String::new(),
        }
    }

    /// Creates a table for a matcher.
    pub(super) fn block(&self, matcher: &Matcher, d: &Directive) -> Block {
        let mut hosts = self.hosts.clone();
        if !matcher.hosts.is_empty() {
            hosts.clone_from(&matcher.hosts);
        }
        Block::location(&hosts, &matcher.paths, &d.origin)
    }
}
