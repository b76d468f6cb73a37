//! Finds pools that never get a request because earlier pools take all of them. Pure functions.

use super::table::TypedPool;
use crate::problem::Problem;
use crate::schema::pool::KEY;

/// Returns a problem for each such pool.
pub(super) fn unreachable(pools: &[TypedPool]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (at, pool) in pools.iter().enumerate() {
        if let Some(earlier) = pools[..at].iter().find(|earlier| takes_all_of(earlier, pool)) {
            let is_same = earlier.paths == pool.paths && earlier.hosts == pool.hosts;
            let (name, other, line) = (&pool.name, &earlier.name, earlier.line);
            let what = if is_same {
                format!(
                    "pool `{name}` has the same `match` and `host` as pool `{other}` in line {line}"
                )
            } else {
                format!(
                    "pool `{name}` never gets a request: pool `{other}` in line {line} matches all \
                     of them"
                )
            };
            problems
                .push(pool.problem(&what, "put the narrower pool first: the first match applies"));
        } else if takes(&pool.paths, &["/*".to_owned()]) && takes(&pool.hosts, &["*".to_owned()]) {
            let what = format!(
                "pool `{}` matches all requests: the default pool would get none",
                pool.name
            );
            let hint = format!(
                "move its settings outside the tables `[[{KEY}]]`: there they apply to the default \
                 pool"
            );
            problems.push(pool.problem(&what, hint));
        }
    }
    problems
}

fn takes_all_of(earlier: &TypedPool, pool: &TypedPool) -> bool {
    takes(&earlier.paths, &pool.paths) && takes(&earlier.hosts, &pool.hosts)
}

/// Whether `ours` match everything that one of `theirs` matches. No patterns match everything.
fn takes(ours: &[String], theirs: &[String]) -> bool {
    if ours.is_empty() {
        return true;
    }
    let has = |their: &String| ours.iter().any(|our| covers(our.as_bytes(), their.as_bytes()));
    !theirs.is_empty() && theirs.iter().all(has)
}

/// Whether the wider pattern covers the narrower one. A `*` of the narrower pattern counts as a
/// byte that only a `*` of the wider one matches.
fn covers(wider: &[u8], narrower: &[u8]) -> bool {
    let folder = wider.strip_suffix(b"/*");
    folder == Some(narrower) || fits(wider, narrower)
}

/// Matches a text. When the rest does not match, the last `*` seen takes one more byte.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(byte) if *byte == text[from] => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((of_star, taken)) = star else { return false };
                star = Some((of_star, taken + 1));
                at = of_star + 1;
                from = taken + 1;
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covers_compares_patterns() {
        for (wider, narrower, expected) in [
            ("/api/*", "/api/*", true),
            ("/api/*", "/api", true),
            ("/api/*", "/api/v2/*", true),
            ("/api/*", "/apix", false),
            ("/api/*", "/*", false),
            ("/api/v2/*", "/api/*", false),
            ("/*", "/api/*", true),
            ("/*/export", "/api/export", true),
            ("/*/export", "/api/*", false),
            ("*", "a.example", true),
            ("*.example", "a.example", true),
            ("*.example", "*.b.example", true),
            ("*.b.example", "*.example", false),
            ("/a*b*c", "/a*c", false),
            ("/a*c", "/a*b*c", true),
        ] {
            assert_eq!(
                covers(wider.as_bytes(), narrower.as_bytes()),
                expected,
                "{wider} {narrower}"
            );
        }
    }

    #[test]
    fn empty_pattern_list_matches_everything() {
        let one = |text: &str| vec![text.to_owned()];
        assert!(takes(&[], &[]));
        assert!(takes(&[], &one("/a")));
        assert!(!takes(&one("/a"), &[]));
    }
}
