//! Matchers of a Caddyfile → hosts and patterns of paths.

use crate::from::directive::Directive;
use crate::from::glob::{self, Both};
use std::collections::BTreeMap;

/// Hosts and paths; empty: all of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Matcher {
    pub(super) hosts: Vec<String>,
    pub(super) paths: Vec<String>,
}

impl Matcher {
    /// Limits the matcher to an outer one. Returns whether the result is exact; otherwise it
    /// selects more than both together.
    pub(super) fn limit(&mut self, outer: &Matcher) -> bool {
        if self.hosts.is_empty() {
            self.hosts.clone_from(&outer.hosts);
        }
        if outer.paths.is_empty() {
            return true;
        }
        if self.paths.is_empty() {
            self.paths.clone_from(&outer.paths);
            return true;
        }
        let mut is_exact = true;
        let mut paths: Vec<String> = Vec::new();
        for own in &self.paths {
            for outer in &outer.paths {
                let both = match glob::both(outer, own) {
                    Both::Pattern(both) => both,
                    Both::None => continue,
                    Both::Unknown => {
                        is_exact = false;
                        outer.clone()
                    }
                };
                if !paths.contains(&both) {
                    paths.push(both);
                }
            }
        }
        self.paths = paths;
        is_exact
    }

    /// Puts a prefix before its paths: the part that an outer block has removed from them.
    pub(super) fn add_prefix(&mut self, prefix: &str) {
        if prefix.is_empty() {
            return;
        }
        for path in &mut self.paths {
            *path = match path.strip_prefix('/') {
                Some(rest) => format!("{prefix}/{rest}"),
                None => format!("{prefix}/{path}"),
            };
        }
    }
}

/// Named matchers; `None`: one that has no counterpart.
pub(super) type Named = BTreeMap<String, Option<Matcher>>;

/// Reads the named matchers of a block.
pub(super) fn named(block: &[Directive]) -> Named {
    let matchers = block.iter().filter(|d| d.name.starts_with('@'));
    matchers.map(|d| (d.name.clone(), of_directive(d))).collect()
}

fn of_directive(d: &Directive) -> Option<Matcher> {
    let mut matcher = Matcher::default();
    if d.args.is_empty() {
        for inner in d.inner() {
            add(&mut matcher, &inner.name, &inner.args)?;
        }
    } else {
        add(&mut matcher, d.arg(0), &d.args[1..])?;
    }
    Some(matcher)
}

fn add(matcher: &mut Matcher, kind: &str, args: &[String]) -> Option<()> {
    match kind {
        "path" => {
            for arg in args {
                matcher.paths.push(path(arg)?);
            }
        }
        "path_regexp" => matcher.paths.extend(glob::patterns(args.last()?)?),
        "host" => matcher.hosts.extend(args.iter().cloned()),
        _ => return None,
    }
    Some(())
}

/// Hosts and paths of a matcher that has no counterpart; other conditions are left out.
pub(super) fn widened(d: &Directive, block: &[Directive]) -> Matcher {
    let mut matcher = Matcher::default();
    let named = d.args.first().and_then(|name| block.iter().find(|known| known.name == *name));
    let Some(named) = named else { return matcher };
    for inner in named.inner() {
        let before = matcher.clone();
        // A part that has no counterpart makes the matcher wider.
        if !matches!(inner.name.as_str(), "path" | "path_regexp" | "host")
            || add(&mut matcher, &inner.name, &inner.args).is_none()
        {
            matcher = before;
        }
    }
    matcher
}

/// Conditions of a directive's named matcher: their names and arguments.
fn conditions<'a>(d: &Directive, block: &'a [Directive]) -> Vec<(&'a str, &'a [String])> {
    let named = d.args.first().and_then(|name| block.iter().find(|known| known.name == *name));
    let Some(named) = named else { return Vec::new() };
    match named.args.split_first() {
        Some((name, args)) => vec![(name, args)],
        None => {
            named.inner().iter().map(|inner| (inner.name.as_str(), inner.args.as_slice())).collect()
        }
    }
}

/// Whether a matcher selects requests by their content, for example the requests of a crawler.
/// Refusing them does not protect a path.
pub(super) fn is_by_request(d: &Directive, block: &[Directive]) -> bool {
    const OF_REQUEST: [&str; 9] = [
        "file",
        "header",
        "header_regexp",
        "method",
        "protocol",
        "query",
        "tls",
        "vars",
        "vars_regexp",
    ];
    conditions(d, block).iter().any(|(name, _)| OF_REQUEST.contains(name))
}

/// Paths of a matcher that is nothing but `not path …`.
pub(super) fn excluded(d: &Directive, block: &[Directive]) -> Option<Vec<String>> {
    match conditions(d, block).as_slice() {
        [("not", [kind, paths @ ..])] if kind == "path" => {
            paths.iter().map(|text| path(text)).collect()
        }
        _ => None,
    }
}

/// `/x*`, `*.css` and `/x/*` are patterns of Samovar as well.
fn path(text: &str) -> Option<String> {
    if text == "*" {
        return Some(String::from("/*"));
    }
    let is_file = text.starts_with("*.") && !text.contains('/');
    (text.starts_with('/') || is_file).then(|| text.to_owned())
}

/// Matcher of a directive, and its other arguments. `Err`: it has no counterpart.
pub(super) fn of<'a>(d: &'a Directive, named: &Named) -> Result<(Matcher, &'a [String]), ()> {
    let Some(first) = d.args.first() else { return Ok((Matcher::default(), &[])) };
    let rest = &d.args[1..];
    if first == "*" {
        return Ok((Matcher::default(), rest));
    }
    if first.starts_with('/') {
        let paths = vec![path(first).ok_or(())?];
        return Ok((Matcher { hosts: Vec::new(), paths }, rest));
    }
    if first.starts_with('@') {
        let found = named.get(first).cloned().flatten().ok_or(())?;
        return Ok((found, rest));
    }
    Ok((Matcher::default(), &d.args))
}
