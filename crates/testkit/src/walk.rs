//! One visitor's walk, on both sides: the responses must be equal except for the named rules.

use crate::masks::{Rule, Side, difference, masked};
use crate::visitor::Visitor;
use std::fmt::Write as _;

/// Makes the same walk on both sides and returns the number of equal responses. Panics with the
/// differences.
pub fn compare(walk: fn(&mut Visitor), rules: &[Rule], ours: &Side, theirs: &Side) -> usize {
    compare_by(walk, |_| rules.to_vec(), ours, theirs)
}

/// Same as [`compare`], with rules that depend on the step.
pub fn compare_by(
    walk: fn(&mut Visitor),
    rules_of: impl Fn(&str) -> Vec<Rule>,
    ours: &Side,
    theirs: &Side,
) -> usize {
    let [ours, theirs] = [ours, theirs].map(|side| {
        let mut visitor = Visitor::new(side.address);
        walk(&mut visitor);
        responses_by(&visitor, &rules_of, side)
    });
    let report = differences(&ours, &theirs);
    assert!(report.is_empty(), "`-` is nginx + php-fpm, `+` is Samovar\n{report}");
    ours.len()
}

/// A visitor's responses, step by step, as text that must be equal on both sides.
pub fn responses(visitor: &Visitor, rules: &[Rule], side: &Side) -> Vec<(String, String)> {
    responses_by(visitor, &|_: &str| rules.to_vec(), side)
}

fn responses_by(
    visitor: &Visitor,
    rules_of: &impl Fn(&str) -> Vec<Rule>,
    side: &Side,
) -> Vec<(String, String)> {
    let steps = visitor.steps.iter();
    steps.map(|(step, response)| (step.clone(), masked(response, side, &rules_of(step)))).collect()
}

/// The differences between two sequences of responses; empty if there are none.
pub fn differences(ours: &[(String, String)], theirs: &[(String, String)]) -> String {
    let mut report = String::new();
    for ((step, our), (their_step, their)) in ours.iter().zip(theirs) {
        if step != their_step {
            let _ = writeln!(report, "== the walks part: `{step}`, `{their_step}`");
            break;
        }
        if our != their {
            let _ = writeln!(report, "== {step}\n{}", difference(their, our));
        }
    }
    if ours.len() != theirs.len() {
        let _ = writeln!(report, "== {} answers instead of {}", ours.len(), theirs.len());
    }
    report
}
