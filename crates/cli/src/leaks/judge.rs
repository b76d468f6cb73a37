//! Changes by request → their meaning for an application that should become resident.

use super::differ::Change;
use serde::Serialize;

/// One request of the series.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Index of its URL.
    pub(super) url: usize,
    /// Whether it is the first request of its worker.
    pub(super) first: bool,
    /// Whether it is the first request for its URL, but not the first of all.
    pub(super) new_url: bool,
    /// Whether it is compared with the state after the previous request; otherwise it is compared
    /// with the image.
    pub(super) resident: bool,
}

/// Meaning of a change, in the order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// Grows with each request, or almost each.
    Grows,
    /// Differs after each request: data of one visitor is visible to the next.
    Carries,
    /// A setting of the process that affects the next request.
    Stays,
    /// Declared by code that the boot has loaded: a second declaration is an error.
    Declares,
    /// Like `Stays`, but the resident model resets it.
    PutBack,
    /// Grows with each new URL.
    GrowsByUrl,
    /// Changes after the first request, and then no more: a cache.
    Kept,
    /// Code that a request loads, or data that belongs to it.
    Lazy,
}

impl Verdict {
    /// Returns whether an application with such a change is not ready to be resident.
    pub(super) fn is_problem(self) -> bool {
        self <= Verdict::Declares
    }
}

/// Fraction of the requests, as (numerator, denominator), in which a value must grow to count as
/// growing.
const OFTEN: (usize, usize) = (3, 5);
/// Minimum growth of memory without a more specific name that is reported, in bytes per request.
const MEMORY_BYTES_MIN: i64 = 512;

/// Judges the changes of one name, each with the index of its step.
pub(super) fn verdict(
    steps: &[Step],
    changes: &[(usize, &Change)],
    boot: &Boot,
) -> Option<Verdict> {
    let (_, first) = changes.first()?;
    match first.kind {
        // Call records are only used to find lines. Kind 0 marks merged nodes (holdings.rs).
        b'k' | 0 => None,
        b'I' => Some(Verdict::Lazy),
        b'b' | b'o' | b'r' => {
            let grows = growth(steps, changes).filter(|verdict| *verdict == Verdict::Grows);
            grows.filter(|_| is_worth_a_line(changes))
        }
        b'C' | b'F' | b'c' => Some(declared(steps, changes, boot)),
        b'i' | b'e' | b'h' | b'H' | b'x' | b'w' => Some(setting(steps, changes)),
        b'p' => Some(growth(steps, changes).unwrap_or(Verdict::Stays)),
        b'd' | b'm' => Some(growth(steps, changes).unwrap_or(Verdict::Kept)),
        _ => Some(value(steps, changes, boot)),
    }
}

/// Code and globals that the boot has loaded.
#[derive(Debug, Default)]
pub(super) struct Boot {
    pub(super) files: std::collections::HashSet<String>,
    pub(super) classes: std::collections::HashSet<String>,
    pub(super) globals: std::collections::HashSet<String>,
}

fn is_worth_a_line(changes: &[(usize, &Change)]) -> bool {
    let total: i64 = changes.iter().map(|(_, change)| change.bytes).sum();
    changes[0].1.kind != b'b'
        || total / i64::try_from(changes.len()).unwrap_or(1) >= MEMORY_BYTES_MIN
}

fn is_often(n: usize, of: usize) -> bool {
    n > 0 && n * OFTEN.1 >= of * OFTEN.0
}

/// Returns the steps that count for growth: neither first requests nor those for a new URL.
fn repeated(steps: &[Step]) -> Vec<usize> {
    (0..steps.len()).filter(|n| !steps[*n].first && !steps[*n].new_url).collect()
}

/// Returns growth in the resident model only: with a checkpoint, each request begins with the
/// image.
fn growth(steps: &[Step], changes: &[(usize, &Change)]) -> Option<Verdict> {
    let counts = repeated(steps);
    let grew = |change: &Change| {
        // A value that appears with loaded code has not grown.
        let was_there = change.before.is_some() || !matches!(change.kind, b's' | b'v' | b'g');
        let memory = change.kind == b'b' && change.bytes > 0;
        (change.grown > 0 && was_there) || memory
    };
    let of = counts.iter().filter(|n| steps[**n].resident).count();
    let in_steps = |wanted: &dyn Fn(usize) -> bool| {
        changes.iter().filter(|(n, change)| wanted(*n) && grew(change)).count()
    };
    let shrank = changes.iter().any(|(n, change)| change.grown < 0 && counts.contains(n));
    if is_often(in_steps(&|n| counts.contains(&n) && steps[n].resident), of) && !shrank {
        return Some(Verdict::Grows);
    }
    let by_url = in_steps(&|n| steps[n].new_url && steps[n].resident);
    let only_grows = changes.iter().all(|(_, change)| change.grown >= 0 && change.container);
    (by_url > 0 && only_grows).then_some(Verdict::GrowsByUrl)
}

fn value(steps: &[Step], changes: &[(usize, &Change)], boot: &Boot) -> Verdict {
    if let Some(grows) = growth(steps, changes) {
        return grows;
    }
    let counts = repeated(steps);
    let among = |wanted: &dyn Fn(usize) -> bool| changes.iter().filter(|(n, _)| wanted(*n)).count();
    let carries = if steps.iter().any(|step| step.resident) {
        among(&|n| counts.contains(&n)) * 2 > counts.len() || among(&|n| steps[n].new_url) > 1
    } else if one_for_each_url(steps, changes) {
        // The value depends on the URL: a cache by URL, or the last requested URL.
        let differ = changes.iter().any(|(_, change)| change.print != changes[0].1.print);
        if differ && changes.iter().all(|(_, change)| change.container && change.grown > 0) {
            return Verdict::GrowsByUrl;
        }
        differ
    } else {
        true
    };
    if carries {
        return Verdict::Carries;
    }
    let class = changes[0].1.root.split("::").next().unwrap_or_default();
    let is_new = changes[0].1.kind == b's' && !boot.classes.contains(class);
    if is_new { Verdict::Lazy } else { Verdict::Kept }
}

/// Returns whether all requests for one URL leave the same data.
fn one_for_each_url(steps: &[Step], changes: &[(usize, &Change)]) -> bool {
    let mut prints = std::collections::HashMap::new();
    changes
        .iter()
        .all(|(n, change)| *prints.entry(steps[*n].url).or_insert(change.print) == change.print)
}

fn declared(steps: &[Step], changes: &[(usize, &Change)], boot: &Boot) -> Verdict {
    if changes[0].1.kind == b'c' && value(steps, changes, boot) == Verdict::Carries {
        return Verdict::Carries;
    }
    let file = &changes[0].1.file;
    let is_anonymous = changes[0].1.name.contains("@anonymous");
    let from_boot = boot.files.contains(file) && !is_anonymous;
    if from_boot || file.contains(" : eval()'d code") { Verdict::Declares } else { Verdict::Lazy }
}

/// Settings that php.ini has too, or that reset.c and `engine_settings.c` reset explicitly.
const PUT_BACK: [&str; 19] = [
    "umask",
    "working directory",
    "get_include_path",
    "ignore_user_abort",
    "gc_enabled",
    "locale_get_default",
    "iconv_get_encoding",
    "date_default_timezone_get",
    "mb_language",
    "mb_internal_encoding",
    "mb_http_output",
    "mb_detect_order",
    "mb_substitute_character",
    "mb_regex_encoding",
    "mb_regex_set_options",
    "libxml_use_internal_errors",
    "libxml_get_errors",
    "libxml_get_external_entity_loader",
    "pcntl_async_signals",
];

/// Judges a setting; Samovar's resident model resets some after each request (csrc/model/reset.c).
fn setting(steps: &[Step], changes: &[(usize, &Change)]) -> Verdict {
    let change = changes[0].1;
    let is_put_back = match change.kind {
        b'i' | b'e' | b'H' => true,
        b'h' => {
            change.root.ends_with("handler")
                || change.root.contains("handlers below")
                || change.root.contains("default stream context")
        }
        b'x' => {
            change.root.starts_with("locale (")
                || change.root.starts_with("session_")
                || PUT_BACK.contains(&change.root.as_str())
        }
        _ => false,
    };
    if is_put_back {
        return Verdict::PutBack;
    }
    growth(steps, changes).unwrap_or(Verdict::Stays)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: usize = 6;

    fn steps(resident: bool) -> Vec<Step> {
        (0..STEPS).map(|n| Step { url: 0, first: n == 0, new_url: false, resident }).collect()
    }

    fn judged(kind: u8, resident: bool, grown: &[(usize, i64)]) -> Option<Verdict> {
        let changes: Vec<_> = grown
            .iter()
            .map(|(n, grown)| {
                let (grown, print) = (*grown, *n as u64);
                (
                    *n,
                    Change {
                        kind,
                        grown,
                        print,
                        bytes: grown,
                        root: "A::$b".into(),
                        before: Some(String::new()),
                        ..Change::default()
                    },
                )
            })
            .collect();
        let changes: Vec<_> = changes.iter().map(|(n, change)| (*n, change)).collect();
        let classes = ["A".to_owned()].into();
        verdict(&steps(resident), &changes, &Boot { classes, ..Boot::default() })
    }

    #[test]
    fn growth_differs_from_caches_and_carried_state() {
        let each = |grown: i64| (0..STEPS).map(|n| (n, grown)).collect::<Vec<_>>();
        assert_eq!(judged(b's', true, &each(1)), Some(Verdict::Grows));
        assert_eq!(judged(b's', true, &[(0, 9)]), Some(Verdict::Kept));
        assert_eq!(judged(b's', true, &each(0)), Some(Verdict::Carries));
        assert_eq!(judged(b's', true, &[(0, 1), (3, 1)]), Some(Verdict::Kept));
        assert_eq!(judged(b's', false, &each(1)), Some(Verdict::Carries));
        assert_eq!(judged(b'o', true, &[(0, 4)]), None);
        assert_eq!(judged(b'o', true, &each(2)), Some(Verdict::Grows));
        assert_eq!(judged(b'd', true, &[(0, 1)]), Some(Verdict::Kept));
        assert_eq!(judged(b'i', true, &[(0, 0)]), Some(Verdict::PutBack));
    }

    #[test]
    fn growth_with_new_urls_is_grows_by_url() {
        let mut steps = steps(true);
        for n in [2, 4] {
            steps[n].new_url = true;
        }
        let change = Change {
            kind: b's',
            grown: 1,
            container: true,
            before: Some(String::new()),
            ..Change::default()
        };
        let changes = [(0, &change), (2, &change), (4, &change)];
        assert_eq!(verdict(&steps, &changes, &Boot::default()), Some(Verdict::GrowsByUrl));
    }
}
