//! Which pools would never get a request, because earlier ones take all of it: pure.

use super::table::TypedPool;
use crate::problem::Problem;
use crate::schema::pool::KEY;

/// What is said of each of them.
pub(super) fn unreachable(pools: &[TypedPool]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (at, pool) in pools.iter().enumerate() {
        if let Some(earlier) = pools[..at].iter().find(|earlier| takes_all_of(earlier, pool)) {
            let is_same = earlier.paths == pool.paths && earlier.hosts == pool.hosts;
            let (name, other, line) = (&pool.name, &earlier.name, earlier.line);
            let what = if is_same {
                format!(
                    "pool `{name}` has the same `match` and `host` as pool `{other}` of line {line}"
                )
            } else {
                format!(
                    "pool `{name}` never gets a request: pool `{other}` of line {line} takes them all"
                )
            };
            problems.push(
                pool.problem(&what, "the first that fits counts: put the narrower one first"),
            );
        } else if takes(&pool.paths, &["/*".to_owned()]) && takes(&pool.hosts, &["*".to_owned()]) {
            let what =
                format!("pool `{}` takes all requests: the default pool would get none", pool.name);
            let hint = format!(
                "write its settings outside of the tables `[[{KEY}]]`: they are the default pool's"
            );
            problems.push(pool.problem(&what, hint));
        }
    }
    problems
}

fn takes_all_of(earlier: &TypedPool, pool: &TypedPool) -> bool {
    takes(&earlier.paths, &pool.paths) && takes(&earlier.hosts, &pool.hosts)
}

/// Whether all that one of `theirs` fits is fitted by one of `ours`; no patterns fit everything.
fn takes(ours: &[String], theirs: &[String]) -> bool {
    if ours.is_empty() {
        return true;
    }
    let has = |their: &String| ours.iter().any(|our| covers(our.as_bytes(), their.as_bytes()));
    !theirs.is_empty() && theirs.iter().all(has)
}

/// A `*` of the narrower pattern is a byte that only a `*` of the wider one fits.
fn covers(wider: &[u8], narrower: &[u8]) -> bool {
    let folder = wider.strip_suffix(b"/*");
    folder == Some(narrower) || fits(wider, narrower)
}

/// The last `*` that was met takes one byte more whenever the rest does not fit.
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
    fn what_a_pattern_covers() {
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
    fn nothing_is_everything() {
        let one = |text: &str| vec![text.to_owned()];
        assert!(takes(&[], &[]));
        assert!(takes(&[], &one("/a")));
        assert!(!takes(&one("/a"), &[]));
    }
}
