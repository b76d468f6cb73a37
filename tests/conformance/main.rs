//! Differential conformance: the same requests through nginx + php-fpm and through Samovar.
//!
//! Status, headers and body must be equal, but for the lists in `answer.rs` and the differences that a case
//! documents. `cargo test -p samovar-tests --test conformance -- query multipart` runs themes or cases
//! whose name holds one of the words. `ORACLE_ONLY=1` asks the oracle alone, twice, and prints its answers.
#![allow(clippy::expect_used)]

mod answer;
mod case;
mod diff;
mod sides;
mod stage;
mod themes;

use crate::answer::{Answer, align};
use crate::case::{Case, Is, Models, Step, Theme};
use crate::sides::Sides;
use std::process::ExitCode;

/// The proof that the issue asks for.
const CASES_MIN: usize = 230;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let is_oracle_only = std::env::var_os("ORACLE_ONLY").is_some();
    let themes = themes::all();
    assert_enough(&themes);
    let folder = stage::stage();
    let script = Sides::start("script", &stage::public(folder.path()), is_oracle_only);
    let root = folder.path().join("conformance_resident");
    let resident = Sides::start("resident", &root, is_oracle_only);
    let mut failed_in_all = 0;
    for theme in themes {
        let mut counts = Counts::default();
        for case in theme.cases.iter().filter(|case| is_wanted(&words, theme.name, &case.name)) {
            let both = [&script, &resident];
            let models = if case.models == Models::Both { &both[..] } else { &both[..1] };
            for sides in models {
                let verdict =
                    if is_oracle_only { repeat(sides, case) } else { compare(sides, case) };
                counts.add(theme.name, sides.model, case, verdict);
            }
        }
        if counts.passed + counts.failed > 0 {
            println!("{}: {} passed, {} failed", theme.name, counts.passed, counts.failed);
        }
        failed_in_all += counts.failed;
    }
    if failed_in_all == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn assert_enough(themes: &[Theme]) {
    let count: usize = themes.iter().map(|theme| theme.cases.len()).sum();
    assert!(count >= CASES_MIN, "{count} cases");
    for theme in themes {
        let mut names: Vec<_> = theme.cases.iter().map(|case| &case.name).collect();
        names.sort();
        names.windows(2).for_each(|n| assert_ne!(n[0], n[1], "two cases of {}", theme.name));
    }
}

fn is_wanted(words: &[String], theme: &str, case: &str) -> bool {
    words.is_empty() || words.iter().any(|word| format!("{theme}: {case}").contains(word.as_str()))
}

#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
}

impl Counts {
    fn add(&mut self, theme: &str, model: &str, case: &Case, verdict: Result<(), String>) {
        match verdict {
            Ok(()) => self.passed += 1,
            Err(text) => {
                self.failed += 1;
                println!("FAILED {theme}: {} ({model} model)\n{text}", case.name);
            }
        }
    }
}

/// The oracle against itself: an answer that varies proves nothing.
fn repeat(sides: &Sides, case: &Case) -> Result<(), String> {
    let (first, second) = (sides.theirs(case), sides.theirs(case));
    println!("--- {} ({})", case.name, sides.model);
    for (step, answer) in case.steps.iter().zip(&first) {
        println!("{}\n{answer}", request_text(step));
    }
    case.steps.iter().zip(first.into_iter().zip(second)).try_for_each(|(step, (first, second))| {
        if first == second { Ok(()) } else { Err(report(step, &first, &second)) }
    })
}

fn compare(sides: &Sides, case: &Case) -> Result<(), String> {
    let (theirs, ours) = (sides.theirs(case), sides.ours(case));
    case.steps.iter().zip(theirs.into_iter().zip(ours)).enumerate().try_for_each(
        |(at, (step, (mut theirs, mut ours)))| {
            let is_last = at + 1 == case.steps.len();
            judge(case, is_last, &mut theirs, &mut ours)
                .map_err(|why| format!("  {why}\n{}", report(step, &theirs, &ours)))
        },
    )
}

/// A documented difference is that of the last answer.
fn judge(case: &Case, is_last: bool, theirs: &mut Answer, ours: &mut Answer) -> Result<(), String> {
    let as_they_came = ours.clone();
    align(ours, theirs);
    let Some(difference) = case.difference.as_ref().filter(|_| is_last) else {
        return if theirs == ours { Ok(()) } else { Err("the answers differ".to_owned()) };
    };
    if theirs == ours {
        return Err(format!("equal, although a difference is documented: {}", difference.why));
    }
    let is_documented = match difference.is {
        Is::Replaced(texts) => {
            texts.iter().for_each(|(from, to)| theirs.replace(from, to));
            theirs == ours
        }
        Is::Own(status, texts) => {
            ours.clone_from(&as_they_came);
            ours.status == status && texts.iter().all(|text| ours.contains(text))
        }
    };
    if is_documented {
        return Ok(());
    }
    Err(format!("another difference than the documented one ({})", difference.why))
}

fn report(step: &Step, theirs: &Answer, ours: &Answer) -> String {
    let lines = diff::diff(&theirs.to_string(), &ours.to_string());
    format!("  request: {}\n  - php-fpm, + Samovar:\n{lines}", request_text(step))
}

fn request_text(step: &Step) -> String {
    let bytes = step.bytes("");
    let shown = &bytes[..bytes.len().min(1000)];
    let text = shown.escape_ascii().to_string().replace("\\r\\n", "\n           ");
    if shown.len() < bytes.len() { format!("{text}… ({} bytes)", bytes.len()) } else { text }
}
