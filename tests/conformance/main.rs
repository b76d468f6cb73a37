//! Differential conformance test: sends the same requests to nginx + php-fpm and to Samovar.
//!
//! Status, headers and body must be equal, except for the lists in `response.rs` and the
//! differences that a case documents.
//!
//! `cargo test -p samovar-tests --test conformance -- query multipart` runs the themes or cases
//! whose name contains one of the words. `ORACLE_ONLY=1` queries only the reference server, twice,
//! and prints its responses. `REVERSE=1` runs all cases in reverse order: a resident worker then
//! has other state left from earlier requests.
//!
//! Samovar is queried directly by HTTP, and through nginx and FastCGI. Through FastCGI, the script
//! model runs all cases and the other models a quarter; with `FASTCGI=all`, all models run all
//! cases. Both servers are also queried by HTTP/2 over TLS, through an HAProxy: a quarter of the
//! script model's cases; with `HTTP2=all`, all cases in every model.
#![allow(clippy::expect_used)]

mod case;
mod diff;
mod http2;
mod response;
mod sides;
mod stage;
mod themes;

use crate::case::{Case, Difference, Is, Models, Step, Theme};
use crate::response::{ObservedResponse, align};
use crate::sides::Sides;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Minimum number of cases that the issue requires.
const CASES_MIN: usize = 230;

const NANOS_PER_SECOND: u32 = 1_000_000_000;

/// How often a case is compared if the second changes during each comparison.
const COMPARISONS_MAX: usize = 3;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let mut themes = themes::all();
    assert_enough(&themes);
    for theme in &mut themes {
        let name = theme.name;
        theme.cases.retain(|case| is_wanted(&words, &format!("{name}: {}", case.name)));
    }
    themes.retain(|theme| !theme.cases.is_empty());
    if std::env::var_os("REVERSE").is_some() {
        themes.reverse();
        for theme in &mut themes {
            theme.cases.reverse();
        }
    }
    if themes.is_empty() || run(&themes) == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn is_wanted(words: &[String], name: &str) -> bool {
    words.is_empty() || words.iter().any(|word| name.contains(word.as_str()))
}

/// Runs the themes and returns the number of failed cases.
fn run(themes: &[Theme]) -> usize {
    let is_oracle_only = std::env::var_os("ORACLE_ONLY").is_some();
    let folder = stage::stage();
    let mut script = Sides::start("script", &stage::public(folder.path()), is_oracle_only);
    let handler = folder.path().join("conformance_resident");
    let mut resident = Sides::start("resident", &handler, is_oracle_only);
    let below = folder.path().join("conformance_checkpoint");
    let mut checkpoint = Sides::start("checkpoint", &below, is_oracle_only);
    let (mut passed_in_all, mut failed_in_all) = (0, 0);
    for theme in themes {
        let mut counts = Counts::default();
        for case in &theme.cases {
            let mut all = [&mut script, &mut resident, &mut checkpoint];
            let models = if case.models == Models::All { &mut all[..] } else { &mut all[..1] };
            for sides in models {
                if !is_oracle_only && is_asked_by_http2(sides.model, case) {
                    sides.secure();
                }
                let verdict =
                    if is_oracle_only { repeat(sides, case) } else { compare(sides, case) };
                let verdict = verdict.and_then(|()| sides.no_worker_died());
                counts.add(theme.name, sides.model, case, verdict);
            }
        }
        println!("{}: {} passed, {} failed", theme.name, counts.passed, counts.failed);
        passed_in_all += counts.passed;
        failed_in_all += counts.failed;
    }
    if !is_oracle_only && checkpoint.samovar.as_ref().is_some_and(|s| !rolled_back(s)) {
        println!("FAILED: the checkpoint model answered without rolling back");
        failed_in_all += 1;
    }
    let cases: usize = themes.iter().map(|theme| theme.cases.len()).sum();
    println!("{cases} cases in their models: {passed_in_all} passed, {failed_in_all} failed");
    failed_in_all
}

/// Whether the workers run the checkpoint model and have performed rollbacks.
fn rolled_back(server: &samovar_testkit::Server) -> bool {
    let status = server.status();
    println!("image: {}", status["image"]);
    status["workers"][0]["model"] == "checkpoint" && status["image"]["rollbacks_total"] != 0
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

/// Compares the reference server with itself: a response that varies is useless for a comparison.
fn repeat(sides: &Sides, case: &Case) -> Result<(), String> {
    let (first, second) = (sides.theirs(case), sides.theirs(case));
    println!("--- {} ({})", case.name, sides.model);
    for (step, response) in case.steps.iter().zip(&first) {
        println!("{}\n{response}", request_text(step));
    }
    let may_vary = case.differences.iter().any(|known| matches!(known.is, Is::Own(..)));
    let pairs = case.steps.iter().zip(first.into_iter().zip(second));
    pairs.filter(|_| !may_vary).try_for_each(|(step, (first, second))| {
        if first == second { Ok(()) } else { Err(report(step, &first, &second)) }
    })
}

/// Responses may contain the time (`Max-Age`), so only responses of the same second are comparable.
/// If they differ and the second changed meanwhile, both servers are queried again at the start of
/// a second.
fn compare(sides: &Sides, case: &Case) -> Result<(), String> {
    let mut verdict = Ok(());
    for _ in 0..COMPARISONS_MAX {
        let second = since_epoch().as_secs();
        verdict = compare_now(sides, case);
        if verdict.is_ok() || since_epoch().as_secs() == second {
            break;
        }
        std::thread::sleep(Duration::from_nanos(
            (NANOS_PER_SECOND - since_epoch().subsec_nanos()).into(),
        ));
    }
    verdict
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970")
}

fn compare_now(sides: &Sides, case: &Case) -> Result<(), String> {
    let is_of = |known: &&Difference| known.model.is_none_or(|model| model == sides.model);
    let known = case.differences.iter().find(is_of);
    let theirs = sides.theirs(case);
    if is_asked_by_fastcgi(sides.model, case) {
        let responses = (theirs.clone(), sides.ours_by_fastcgi(case));
        other_way("FastCGI", case, known, responses, |_, _, _| false)?;
    }
    if is_asked_by_http2(sides.model, case) {
        other_way("HTTP/2", case, known, sides.both_by_http2(case), http2::is_known)?;
    }
    let responses = theirs.into_iter().zip(sides.ours(case));
    let mut is_equal = true;
    for (step, (mut theirs, mut ours)) in case.steps.iter().zip(responses) {
        let as_it_came = ours.clone();
        align(&mut ours, &mut theirs);
        if theirs == ours {
            continue;
        }
        is_equal = false;
        explain(known, &theirs, &ours, &as_it_came)
            .map_err(|why| format!("  {why}\n{}", report(step, &theirs, &ours)))?;
    }
    match known {
        Some(known) if is_equal => {
            Err(format!("  equal, although a difference is documented: {}", known.why))
        }
        _ => Ok(()),
    }
}

/// FastCGI works the same in every model, and each case takes time: a quarter is enough outside the
/// script model.
fn is_asked_by_fastcgi(model: &str, case: &Case) -> bool {
    model == "script"
        || is_drawn(case)
        || std::env::var("FASTCGI").is_ok_and(|which| which == "all")
}

fn is_asked_by_http2(model: &str, case: &Case) -> bool {
    (model == "script" && is_drawn(case))
        || std::env::var("HTTP2").is_ok_and(|which| which == "all")
}

fn is_drawn(case: &Case) -> bool {
    case.name.len().is_multiple_of(4)
}

/// Compares responses over another protocol: FastCGI through nginx, in place of php-fpm, or HTTP/2.
/// Documented differences may be absent there: nginx finds files and scripts itself, and the proxy
/// rejects some requests instead of forwarding them.
fn other_way(
    way: &str,
    case: &Case,
    known: Option<&Difference>,
    (theirs, ours): (Vec<ObservedResponse>, Vec<ObservedResponse>),
    is_known: impl Fn(&[u8], &mut ObservedResponse, &mut ObservedResponse) -> bool,
) -> Result<(), String> {
    let responses = theirs.into_iter().zip(ours);
    for (step, (mut theirs, mut ours)) in case.steps.iter().zip(responses) {
        let as_it_came = ours.clone();
        align(&mut ours, &mut theirs);
        if !is_known(&step.bytes(""), &mut theirs, &mut ours) && theirs != ours {
            explain(known, &theirs, &ours, &as_it_came)
                .map_err(|why| format!("  by {way}: {why}\n{}", report(step, &theirs, &ours)))?;
        }
    }
    Ok(())
}

/// Returns an error unless a documented difference explains why two responses differ.
fn explain(
    known: Option<&Difference>,
    theirs: &ObservedResponse,
    ours: &ObservedResponse,
    as_it_came: &ObservedResponse,
) -> Result<(), String> {
    let Some(known) = known else { return Err("the answers differ".to_owned()) };
    let is_explained = match known.is {
        Is::Replaced(texts) => {
            let mut expected = theirs.clone();
            for (from, to) in texts {
                expected.replace(from, to);
            }
            expected == *ours
        }
        Is::Status(status) => ObservedResponse { status, ..theirs.clone() } == *ours,
        Is::Own(status, texts) => {
            as_it_came.status == status && texts.iter().all(|text| as_it_came.contains(text))
        }
    };
    if is_explained { Ok(()) } else { Err(format!("not the documented difference: {}", known.why)) }
}

fn report(step: &Step, theirs: &ObservedResponse, ours: &ObservedResponse) -> String {
    let lines = diff::diff(&theirs.to_string(), &ours.to_string());
    format!("  request: {}\n  - php-fpm, + Samovar:\n{lines}", request_text(step))
}

fn request_text(step: &Step) -> String {
    let bytes = step.bytes("");
    let shown = &bytes[..bytes.len().min(1000)];
    let text = shown.escape_ascii().to_string().replace("\\r\\n", "\n           ");
    if shown.len() < bytes.len() { format!("{text}… ({} bytes)", bytes.len()) } else { text }
}
