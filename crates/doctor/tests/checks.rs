//! Each check by data: faulty facts give its finding, healthy facts give none, and unknown facts
//! are "not checked".

#[path = "checks/facts.rs"]
mod facts;

use facts::{CASES, Case, healthy};
use samovar_doctor::{Examination, Facts, Shown, TRIALS, all, examine, text};
use std::collections::BTreeSet;

fn codes(of: &Examination) -> Vec<&'static str> {
    of.findings.iter().map(|found| found.code).collect()
}

#[test]
fn healthy_facts_have_no_finding() {
    let examined = examine(&healthy(), &[]);
    assert!(examined.findings.is_empty(), "{:#?}", examined.findings);
    assert!(examined.not_checked.is_empty(), "all facts are known: {:?}", examined.not_checked);
    assert_eq!(examined.passed.len(), all().len());
}

#[test]
fn unknown_facts_are_not_checked() {
    let examined = examine(&Facts::default(), &[]);
    assert!(examined.findings.is_empty() && examined.passed.is_empty(), "{examined:#?}");
    assert_eq!(examined.not_checked.len(), all().len());
    assert!(examined.not_checked.iter().all(|not| !not.why.is_empty()));
}

#[test]
fn faulty_facts_give_exactly_the_finding() {
    for Case { code, spoil, says, also } in CASES {
        let mut facts = healthy();
        spoil(&mut facts);
        let examined = examine(&facts, &[]);
        let expected: BTreeSet<_> = [*code].into_iter().chain(also.iter().copied()).collect();
        let found: BTreeSet<_> = codes(&examined).into_iter().collect();
        assert_eq!(found, expected, "{code}: {:#?}", examined.findings);
        let finding = examined.findings.iter().find(|found| found.code == *code).expect("it");
        let parts = [&finding.text, &finding.value, &finding.place, &finding.gain];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).cloned().collect();
        let shown = parts.join(" ");
        assert!(shown.contains(says), "{code}: `{says}` is not in `{shown}`");
        assert!(!finding.hint.is_empty() && !finding.text.ends_with('.'), "{finding:?}");
    }
}

#[test]
fn each_check_has_a_case() {
    let cases: BTreeSet<_> = CASES.iter().map(|case| case.code).collect();
    let known: BTreeSet<_> = all().iter().map(|check| check.code).collect();
    assert_eq!(known.len(), all().len(), "codes are unique");
    assert_eq!(cases, known, "each check has a case, and each case a check");
    assert!(known.len() >= 30);
}

#[test]
fn trials_are_those_of_known_checks_and_are_shown() {
    for (code, change) in TRIALS {
        assert!(all().iter().any(|check| check.code == code), "{code}");
        let case = CASES.iter().find(|case| case.code == code).expect("a case");
        let mut facts = healthy();
        (case.spoil)(&mut facts);
        let shown = text(&examine(&facts, &[]), Shown::Findings);
        assert!(shown.contains(&format!("measure it: samovar try {change}\n")), "{shown}");
    }
}

#[test]
fn ignored_check_is_not_made() {
    let mut facts = healthy();
    facts.php[0].directives.insert("display_errors".into(), "1".into());
    assert_eq!(codes(&examine(&facts, &["jit"])), ["display-errors"]);
    let examined = examine(&facts, &["display-errors"]);
    assert!(examined.findings.is_empty());
    assert_eq!(examined.ignored, ["display-errors"]);
}

#[test]
fn unknown_directive_is_not_taken_for_healthy() {
    let mut facts = healthy();
    facts.php[0].directives.clear();
    facts.php[0].extensions.clear();
    facts.status.as_mut().expect("a status").opcache = None;
    let examined = examine(&facts, &[]);
    assert!(examined.findings.is_empty(), "{:#?}", examined.findings);
    for check in all().iter().filter(|check| matches!(check.group.name(), "opcache" | "php")) {
        let is_made = examined.passed.contains(&check.code);
        assert_eq!(is_made, check.code == "php-version", "{}", check.code);
    }
}

#[test]
fn second_pool_is_checked_too() {
    let mut facts = healthy();
    facts.php[0].pool = "default".into();
    let mut second = facts.php[0].clone();
    second.pool = "blog".into();
    second.directives.insert("memory_limit".into(), "-1".into());
    facts.php.push(second);
    let examined = examine(&facts, &[]);
    let found = examined.findings.iter().find(|found| found.code == "memory-limit-none");
    assert_eq!(found.map(|found| &*found.pool), Some("blog"));
}

#[test]
fn many_findings_of_one_check_are_cut() {
    let mut facts = healthy();
    let routes = facts.routes.as_mut().expect("routes");
    for n in 0..25 {
        let mut route = routes[0].clone();
        route.route = format!("/r{n}");
        route.fatal = 1;
        routes.push(route);
    }
    let examined = examine(&facts, &[]);
    let found: Vec<_> = examined.findings.iter().filter(|f| f.code == "fatal-errors").collect();
    assert_eq!(found.len(), 10);
    assert!(found[9].text.ends_with("(and 15 more findings of this check)"), "{}", found[9].text);
}

#[test]
fn random_facts_of_a_hostile_worker_do_not_panic() {
    let mut facts = healthy();
    for value in ["", "-", "999999999999999999999999", "\u{0}", "1K", "é", "0x0"] {
        for directive in facts.php[0].directives.values_mut() {
            value.clone_into(directive);
        }
        value.clone_into(&mut facts.php[0].version);
        let _ = examine(&facts, &[]);
    }
    for route in facts.routes.iter_mut().flatten() {
        route.run = u64::MAX;
        route.cpu_ns = u64::MAX;
        route.queue_ns = u64::MAX;
        route.peak_bytes_max = u64::MAX;
        route.waits.iter_mut().for_each(|wait| wait.ns = u64::MAX);
    }
    let opcache = facts.status.as_mut().and_then(|status| status.opcache.as_mut()).expect("it");
    (opcache.used_bytes, opcache.free_bytes, opcache.scripts) = (u64::MAX, u64::MAX, u64::MAX);
    facts.now = u64::MAX;
    let _ = examine(&facts, &[]);
}
