//! Changes by request → their meaning for an application that should become resident.

use super::differ::Change;
use super::trend::{Steps, Trend, trends};
use serde::Serialize;

/// Meaning of a change, in the order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// Grows again and again when one URL is repeated.
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

/// Fractions of the repeated requests of a URL, as (numerator, denominator): a value that changes
/// in more than the first one, or in the second one and at least `CHANGED_MIN` times, differs from
/// request to request.
const HALF: (usize, usize) = (1, 2);
const REGULAR: (usize, usize) = (1, 4);
const CHANGED_MIN: usize = 3;

/// Judges the changes of one name, each with the index of its step.
pub(super) fn verdict(steps: &Steps, changes: &[(usize, &Change)], boot: &Boot) -> Option<Verdict> {
    let (_, first) = changes.first()?;
    match first.kind {
        // Call records are only used to find lines. Kind 0 marks merged nodes (holdings.rs).
        b'k' | 0 => None,
        b'I' => Some(Verdict::Lazy),
        b'b' | b'o' | b'r' => growth(steps, changes).filter(|verdict| *verdict == Verdict::Grows),
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

/// Returns growth in the resident model only: with a checkpoint, each request begins with the
/// image.
fn growth(steps: &Steps, changes: &[(usize, &Change)]) -> Option<Verdict> {
    if trends(steps, changes).iter().any(Trend::is_leak) {
        return Some(Verdict::Grows);
    }
    let grew = |change: &Change| {
        change.grown > 0 && (change.before.is_some() || !matches!(change.kind, b's' | b'v' | b'g'))
    };
    let is_new = |n: usize| steps.at(n).new_url && steps.at(n).resident;
    let by_url = changes.iter().any(|(n, change)| is_new(*n) && grew(change));
    let only_grows = changes.iter().enumerate().all(|(n, (_, change))| {
        let before = n.checked_sub(1).map(|before| changes[before].1);
        change.grown >= 0 && is_cached(before, change)
    });
    (by_url && only_grows).then_some(Verdict::GrowsByUrl)
}

fn value(steps: &Steps, changes: &[(usize, &Change)], boot: &Boot) -> Verdict {
    if let Some(grows) = growth(steps, changes) {
        return grows;
    }
    let carries = if steps.are_resident() {
        is_carried(steps, changes)
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

/// Returns whether a value differs from request to request of any URL, or from URL to URL.
fn is_carried(steps: &Steps, changes: &[(usize, &Change)]) -> bool {
    let mut by_url = std::collections::BTreeMap::<usize, usize>::new();
    let mut new_urls = 0;
    for (n, (step, change)) in changes.iter().enumerate() {
        let before = n.checked_sub(1).map(|before| changes[before].1);
        if is_cached(before, change) {
            continue;
        }
        let step = steps.at(*step);
        new_urls += usize::from(step.new_url);
        if step.repeat > 0 && step.span == 1 {
            *by_url.entry(step.url).or_default() += 1;
        }
    }
    let differs = |(url, n): (&usize, &usize)| {
        let of = steps.singles(*url);
        n * HALF.1 > of * HALF.0 || (*n >= CHANGED_MIN && n * REGULAR.1 >= of * REGULAR.0)
    };
    new_urls > 1 || by_url.iter().any(differs)
}

/// Returns whether a container changed like a cache: members were added, or some older members
/// made room for new ones. If the removed members are those that the previous change added, the
/// next visitor replaces the data of the last one.
fn is_cached(before: Option<&Change>, change: &Change) -> bool {
    let turnover = change.turnover;
    if !change.container || turnover.added == 0 {
        // The members of a large container are only counted.
        return change.container && change.grown > 0;
    }
    let replaces_last = before.is_some_and(|before| before.turnover.added == turnover.removed);
    turnover.removed == 0 || (turnover.keeps_some && !replaces_last)
}

/// Returns whether all requests for one URL leave the same data.
fn one_for_each_url(steps: &Steps, changes: &[(usize, &Change)]) -> bool {
    let mut prints = std::collections::HashMap::new();
    changes
        .iter()
        .all(|(n, change)| *prints.entry(steps.at(*n).url).or_insert(change.print) == change.print)
}

fn declared(steps: &Steps, changes: &[(usize, &Change)], boot: &Boot) -> Verdict {
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
fn setting(steps: &Steps, changes: &[(usize, &Change)]) -> Verdict {
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

    fn steps(resident: bool) -> Steps {
        let mut steps = Steps::default();
        (0..STEPS).for_each(|n| steps.add(0, (n == 0, false), resident, 1));
        steps
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
        let mut steps = Steps::default();
        (0..STEPS).for_each(|n| steps.add(n / 2, (n == 0, n > 0 && n % 2 == 0), true, 1));
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
