//! Matchers of a Caddyfile → hosts and patterns of paths.

use crate::from::directive::Directive;
use crate::from::glob;
use std::collections::BTreeMap;

/// Hosts and paths; empty: all of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Matcher {
    pub(super) hosts: Vec<String>,
    pub(super) paths: Vec<String>,
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

/// Whether a matcher selects clients by their addresses.
pub(super) fn is_by_address(d: &Directive, block: &[Directive]) -> bool {
    fn has(d: &Directive) -> bool {
        let is_address = |word: &str| matches!(word, "remote_ip" | "client_ip");
        is_address(&d.name)
            || d.args.iter().any(|arg| is_address(arg) || arg.contains("remote_ip("))
            || d.inner().iter().any(has)
    }
    let named = d.args.first().and_then(|name| block.iter().find(|known| known.name == *name));
    named.is_some_and(has)
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
