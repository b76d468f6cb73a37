//! Tables of a site in the order in which nginx selects its locations: exact paths, prefixes that
//! end the search, regular expressions, other prefixes by length, the server.

use super::access::Controls;
use super::site::Upstreams;
use crate::from::directive::Directive;
use crate::from::draft::{Block, Draft, Value};
use crate::from::origin::Origin;

/// Order of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(u8, usize);

impl Rank {
    pub(super) fn exact() -> Rank {
        Rank(0, 0)
    }

    pub(super) fn prefix(path: &str, ends_search: bool) -> Rank {
        // The longest prefix is the first.
        Rank(if ends_search { 1 } else { 3 }, usize::MAX - path.len())
    }

    pub(super) fn regex() -> Rank {
        Rank(2, 0)
    }

    pub(super) fn server() -> Rank {
        Rank(4, 0)
    }
}

/// File or script for paths without a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Front {
    /// 404
    Nothing,
    Script(String),
}

/// A site while its locations are being converted.
pub(super) struct Context<'a> {
    pub(super) server: &'a Directive,
    /// Hosts of its tables; empty: every host.
    pub(super) hosts: Vec<String>,
    pub(super) root: Option<String>,
    /// The site has the general settings.
    pub(super) is_main: bool,
    /// Table without a path.
    pub(super) top: Block,
    pub(super) front: Option<(Front, Origin)>,
    /// Address of the first `fastcgi_pass`.
    pub(super) upstream: Option<String>,
    /// Groups of php-fpm servers.
    pub(super) groups: &'a Upstreams,
    /// A location runs all scripts, and 404 is the response for missing ones.
    pub(super) missing_scripts: Option<Origin>,
    /// Locations that run one script each.
    pub(super) single_scripts: Option<Origin>,
    pub(super) runs_all_scripts: bool,
    /// Controls of access of the server.
    pub(super) controls: Controls,
    /// Control of the access to the front controller.
    pub(super) guarded_front: Option<Origin>,
    /// Scripts with controls of access.
    pub(super) guarded_scripts: Vec<(Vec<String>, Origin)>,
    /// Single scripts without them.
    pub(super) open_scripts: Vec<(Vec<String>, Origin)>,
    pub(super) placed: Vec<(Rank, Block)>,
}

impl Context<'_> {
    pub(super) fn place(&mut self, rank: Rank, block: Block) {
        if block.has_effect() {
            self.placed.push((rank, block));
        }
    }

    /// Adds the tables to the draft.
    pub(super) fn finish(mut self, draft: &mut Draft) {
        let all = |origin: &Origin| Block::location(&self.hosts, &[], origin);
        // The server's controls apply to all its locations, those of `/` to paths without one.
        let server = self.controls.first().cloned();
        if let (None, Some(control)) = (&server, &self.guarded_front) {
            let mut block = all(control);
            draft.guard(&mut block, control);
            self.placed.push((Rank::server(), block));
        }
        self.placed.push((Rank::server(), self.top));
        promote(&mut self.placed);
        self.placed.sort_by_key(|(rank, _)| *rank);
        let mut blocks: Vec<Block> = self.placed.into_iter().map(|(_, block)| block).collect();
        if let Some(control) = &server {
            let mut block = Block::location(&self.hosts, &[], control);
            draft.guard(&mut block, control);
            blocks.push(block);
        } else {
            except(&mut blocks);
        }
        for block in blocks {
            draft.push(block);
        }
    }
}

/// The longest prefix counts: a prefix inside one that ends the search comes before it.
fn promote(placed: &mut [(Rank, Block)]) {
    let ends = |(rank, _): &&(Rank, Block)| rank.0 == 1;
    let outer: Vec<String> = placed.iter().filter(ends).flat_map(|(_, b)| b.paths()).collect();
    for (rank, block) in placed.iter_mut().filter(|(rank, _)| rank.0 == 3) {
        let is_inside =
            |path: &String| outer.iter().any(|outer| path.starts_with(outer.trim_end_matches('*')));
        if block.paths().iter().any(is_inside) {
            rank.0 = 1;
        }
    }
}

/// A location inside a denied folder is not denied in nginx.
fn except(blocks: &mut [Block]) {
    let is_denied = |block: &Block| block.entries.get("", "deny").is_some();
    for at in 1..blocks.len() {
        if !is_denied(&blocks[at]) {
            continue;
        }
        let denied = blocks[at].paths();
        for block in &mut blocks[..at] {
            let ends = ["deny", "redirect", "status"];
            let is_open = ends.iter().all(|key| block.entries.get("", key).is_none());
            let is_inside = |path: &String| {
                let folder = |denied: &String| denied.strip_suffix('*').map(str::to_owned);
                denied.iter().filter_map(folder).any(|folder| path.starts_with(&folder))
            };
            if is_open && !block.paths().is_empty() && block.paths().iter().all(is_inside) {
                let origin = block.origin.clone();
                block.set("deny", Value::plain(false), &origin);
            }
        }
    }
}
