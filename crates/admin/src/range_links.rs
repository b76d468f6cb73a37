//! Links and forms of a page keep its time range: one place for all of them.
//!
//! A page's text has `href="/` and `action="/` in its own links only: quotes in texts from outside
//! are escaped.

use crate::query::link;
use std::fmt::Write as _;

const HREF: &str = "href=\"/";
const ACTION: &str = "action=\"/";
/// Parameter of the comparison. The others are those of the range.
const COMPARE: &str = "compare";

/// Returns a page's text whose links to pages have the pairs of the range. A link with a range of
/// its own is not changed. `is_page` decides whether a path has such links.
pub(crate) fn keep(
    text: &str,
    pairs: &[(&'static str, String)],
    is_page: impl Fn(&str) -> bool,
) -> String {
    if pairs.is_empty() {
        return text.to_owned();
    }
    let mut inputs = String::new();
    for (name, value) in pairs {
        // Writing to a string cannot fail.
        let _ = write!(inputs, "<input type=\"hidden\" name=\"{name}\" value=\"{value}\">");
    }
    let mut kept = String::with_capacity(text.len() + text.len() / 8);
    let mut rest = text;
    loop {
        let next = [HREF, ACTION].into_iter().filter_map(|of| Some((rest.find(of)?, of))).min();
        let Some((at, of)) = next else {
            kept.push_str(rest);
            return kept;
        };
        let (before, tail) = rest.split_at(at + of.len() - 1);
        let end = tail.find('"').unwrap_or(tail.len());
        let (address, tail) = tail.split_at(end);
        kept.push_str(before);
        kept.push_str(address);
        rest = tail;
        let (path, own) = address.split_once('?').unwrap_or((address, ""));
        if !is_page(path) {
            continue;
        }
        if of == HREF {
            for (nth, (name, value)) in missing(own, pairs).enumerate() {
                let is_first = own.is_empty() && nth == 0;
                let pair = link("", &[(name, value)]);
                kept.push_str(if is_first { "?" } else { "&amp;" });
                kept.push_str(pair.trim_start_matches('?'));
            }
        } else if let Some(end) = tail.find('>') {
            let (tag, tail) = tail.split_at(end + 1);
            // A form that selects a range has these inputs itself.
            let has_own = tag.contains("data-range");
            kept.push_str(tag);
            kept.push_str(if has_own { "" } else { &inputs });
            rest = tail;
        }
    }
}

/// Returns the pairs that a link's own query does not decide.
fn missing<'a>(
    own: &str,
    pairs: &'a [(&'static str, String)],
) -> impl Iterator<Item = (&'static str, &'a str)> {
    let has = |names: &[&str]| {
        own.split("&amp;").filter_map(|pair| pair.split('=').next()).any(|n| names.contains(&n))
    };
    let (has_range, has_comparison) = (has(&["range", "from", "to"]), has(&[COMPARE]));
    let is_missing = move |name: &str| if name == COMPARE { !has_comparison } else { !has_range };
    pairs
        .iter()
        .filter(move |(name, _)| is_missing(name))
        .map(|(name, value)| (*name, value.as_str()))
}

#[cfg(test)]
mod tests {
    use super::keep;

    #[test]
    fn links_and_forms_keep_the_range() {
        let pairs = [("range", "6h".to_owned()), ("compare", "none".to_owned())];
        let is_page = |path: &str| ["/", "/route", "/routes"].contains(&path);
        for (text, expected) in [
            ("<a href=\"/\">", "<a href=\"/?range=6h&amp;compare=none\">"),
            (
                "<a class=\"x\" href=\"/route?name=a&amp;b=c\">x",
                "<a class=\"x\" href=\"/route?name=a&amp;b=c&amp;range=6h&amp;compare=none\">x",
            ),
            ("<a href=\"/?range=1d&amp;compare=day\">", "<a href=\"/?range=1d&amp;compare=day\">"),
            ("<a href=\"/?from=5\">", "<a href=\"/?from=5&amp;compare=none\">"),
            ("<link href=\"/assets/style.css\">", "<link href=\"/assets/style.css\">"),
            ("<a href=\"#main\"> href=&quot;/", "<a href=\"#main\"> href=&quot;/"),
            (
                "<form class=\"f\" action=\"/routes\" role=\"x\"><b>",
                "<form class=\"f\" action=\"/routes\" role=\"x\"><input type=\"hidden\" \
                 name=\"range\" value=\"6h\"><input type=\"hidden\" name=\"compare\" \
                 value=\"none\"><b>",
            ),
            ("<form action=\"/\" data-range>", "<form action=\"/\" data-range>"),
            ("<a href=\"/", "<a href=\"/?range=6h&amp;compare=none"),
        ] {
            assert_eq!(keep(text, &pairs, is_page), expected);
            assert_eq!(keep(text, &[], is_page), text);
        }
    }
}
