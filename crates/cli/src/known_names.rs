//! Names of routes and functions that a command was given: the error for one that the server does
//! not know, with the nearest ones.

use crate::control_client;
use samovar_config::names::nearest;
use samovar_wire::{Figures, Request};
use std::path::Path;

/// Maximum number of names in a hint.
const SUGGESTIONS_MAX: usize = 3;

/// Returns the error for a route without data, if the server knows no such route. `with_data` are
/// the routes with data. If the server does not count requests, those are all known routes.
pub(crate) fn no_such_route(
    path: &Path,
    route: &str,
    with_data: &[(String, u64)],
) -> Option<anyhow::Error> {
    // Further routes are found only if the server answers.
    let figures = control_client::ask(path, &Request::Figures, control_client::RESPONSE_LIMIT);
    let figures: Figures =
        figures.and_then(|line| control_client::understand(&line)).unwrap_or_default();
    let counted = figures.routes.iter().map(|line| line.route.as_str());
    let known: Vec<&str> = with_data.iter().map(|(name, _)| name.as_str()).chain(counted).collect();
    // A route that is not in the list may be one of those that were left out.
    let may_be_known = known.contains(&route) || figures.routes_left_out > 0;
    (!may_be_known && !known.is_empty()).then(|| {
        let names = suggestions(route, &known);
        anyhow::anyhow!("no such route: `{route}`\nhint: {}", hint(&names, &known))
    })
}

/// Returns the known names that are similar to a typed one, the best one first: mistyped ones, then
/// those that contain it.
pub(crate) fn suggestions<'a>(typed: &str, known: &[&'a str]) -> Vec<&'a str> {
    let lower = |text: &str| text.to_lowercase();
    let typed = lower(typed);
    let contains = |name: &&&str| lower(name).contains(&typed) || typed.contains(&lower(name));
    // `/cart` is the path of `index.php /cart`.
    let last = |name: &str| lower(name.rsplit([' ', '\\', ':']).next().unwrap_or(name));
    let words: Vec<String> = known.iter().map(|name| last(name)).collect();
    let by_word = nearest(&last(&typed), words.iter().map(String::as_str));
    let by_word = by_word.and_then(|word| words.iter().position(|of| of == word));
    let mut found: Vec<&str> = Vec::new();
    let near = nearest(&typed, known.iter().copied()).into_iter();
    let all = near.chain(by_word.map(|at| known[at])).chain(known.iter().filter(contains).copied());
    for name in all {
        if found.len() < SUGGESTIONS_MAX && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// Returns a hint with the suggestions, or with some known names.
pub(crate) fn hint(suggestions: &[&str], known: &[&str]) -> String {
    let listed = |names: &[&str]| {
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        control_client::printable(&names.join(", "))
    };
    match suggestions {
        [] => format!("known are {}", listed(&known[..known.len().min(SUGGESTIONS_MAX)])),
        names => format!("did you mean {}?", listed(names)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_are_mistyped_names_and_parts_of_names() {
        let known = ["index.php /cart", "index.php /checkout", "App\\Cart::total", "feed.php"];
        for (typed, expected) in [
            ("index.php /crat", &["index.php /cart"][..]),
            ("/cart", &["index.php /cart"]),
            ("/chekout", &["index.php /checkout"]),
            ("total", &["App\\Cart::total"]),
            ("index.php", &["index.php /cart", "index.php /checkout"]),
            ("zzzzzzzzz", &[]),
        ] {
            let found = suggestions(typed, &known);
            assert!(expected.iter().all(|name| found.contains(name)), "{typed}: {found:?}");
            assert_eq!(found.is_empty(), expected.is_empty(), "{typed}: {found:?}");
        }
        assert_eq!(hint(&[], &known[..2]), "known are `index.php /cart`, `index.php /checkout`");
    }
}
