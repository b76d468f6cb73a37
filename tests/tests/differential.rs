//! The same request through Samovar and through nginx + php-fpm: status, headers and body must be equal.
//!
//! Cases are data: see the tables of `cases/`. A difference that is a decision stands in the table with its reason and
//! with what Samovar answers instead; one that does not exist any more fails too.

#[path = "differential/cases.rs"]
mod cases;

use cases::{Case, Expect, Step};
use samovar_testkit::http::{Client, Response};
use samovar_testkit::{Oracle, Server, workspace};
use std::fmt::Write as _;
use std::net::SocketAddr;

/// Headers that are not compared, each with its reason.
const NOT_COMPARED: &[(&str, &str)] = &[
    ("date", "the time"),
    ("server", "nginx's name; Samovar sends none"),
    ("connection", "nginx repeats `close`, hyper only where it must"),
    ("keep-alive", "hop by hop"),
    ("transfer-encoding", "framing: the body is compared without it"),
    ("content-length", "framing: compared with the body's length instead"),
    ("etag", "nginx and Samovar make their own for files"),
    ("accept-ranges", "nginx says it for files, also where it does not matter"),
    ("x-request-id", "Samovar's own"),
];

fn answers(address: SocketAddr, steps: &[Step]) -> Vec<Response> {
    let mut cookies = String::new();
    let one = |step: &Step| {
        let mut client = Client::connect(address);
        client.send(&step.bytes(&cookies));
        let response = client.read(step.is_head());
        if !response.cookies().is_empty() {
            cookies = response.cookies();
        }
        response
    };
    steps.iter().map(one).collect()
}

/// What is compared: status, headers in alphabetical order, body.
fn comparable(
    response: &Response,
    case: &Case,
    rename: &[(&str, &str)],
) -> (u16, Vec<String>, String) {
    let skipped = |name: &str| NOT_COMPARED.iter().any(|(n, _)| *n == name);
    let mut headers: Vec<String> = response
        .headers
        .iter()
        .filter(|(name, _)| !skipped(name))
        .map(|(name, value)| format!("{name}: {}", without_session_id(value)))
        .collect();
    headers.sort();
    let mut body = case.normalise(&response.text());
    for (from, to) in rename {
        body = body.replace(from, to);
    }
    (response.status, headers, body)
}

fn without_session_id(value: &str) -> String {
    match value.split_once('=') {
        Some((name @ ("PHPSESSID" | "OWN"), rest)) => {
            let after = rest.split_once(';').map_or("", |(_, after)| after);
            format!("{name}=…;{after}")
        }
        _ => value.to_owned(),
    }
}

fn check_lengths(case: &Case, response: &Response, wrong: &mut Vec<String>) {
    let promised = response.header("content-length").and_then(|l| l.parse::<usize>().ok());
    if promised.is_some_and(|l| l != response.body.len())
        && !case.is_head()
        && response.status != 304
    {
        wrong.push(format!(
            "{}: Content-Length {promised:?}, body {}",
            case.name,
            response.body.len()
        ));
    }
}

struct Sides<'a> {
    ours: SocketAddr,
    theirs: SocketAddr,
    rename: &'a [(&'a str, &'a str)],
    is_resident: bool,
}

fn compare(case: &Case, sides: &Sides<'_>, wrong: &mut Vec<String>) {
    let ours = answers(sides.ours, &case.steps);
    let theirs = answers(sides.theirs, &case.steps);
    for (step, (a, b)) in ours.iter().zip(&theirs).enumerate() {
        check_lengths(case, a, wrong);
        let (a, b) = (comparable(a, case, sides.rename), comparable(b, case, &[]));
        match case.expect(sides.is_resident) {
            Expect::Equal if a != b => wrong.push(difference(case, step, &a, &b)),
            Expect::Equal => {}
            Expect::Instead { why, .. } if a == b => {
                wrong.push(format!("{}: no difference any more ({why})", case.name));
            }
            Expect::Instead { status, body, why } => {
                if a.0 != status || !a.2.contains(body) {
                    wrong.push(format!("{}: not even as documented ({why}): {a:?}", case.name));
                }
            }
        }
    }
}

fn difference(
    case: &Case,
    step: usize,
    ours: &(u16, Vec<String>, String),
    theirs: &(u16, Vec<String>, String),
) -> String {
    let mut text = format!("── {} (request {}) ──\n", case.name, step + 1);
    let _ = writeln!(text, "{}", String::from_utf8_lossy(&case.steps[step].bytes("")).trim_end());
    if ours.0 != theirs.0 {
        let _ = writeln!(text, "  status   php-fpm {}   samovar {}", theirs.0, ours.0);
    }
    for (sign, lines, others) in [("-", &theirs.1, &ours.1), ("+", &ours.1, &theirs.1)] {
        for line in lines.iter().filter(|l| !others.contains(l)) {
            let _ = writeln!(text, "  {sign} {line}");
        }
    }
    for (sign, lines, others) in [("-", &theirs.2, &ours.2), ("+", &ours.2, &theirs.2)] {
        for line in lines.lines().filter(|l| !others.contains(*l)).take(8) {
            let _ = writeln!(text, "  {sign} body: {}", line.chars().take(200).collect::<String>());
        }
    }
    text
}

fn run(name: &str, cases: &[Case], sides: &Sides<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut failed = 0;
    for case in cases {
        let before = wrong.len();
        compare(case, sides, &mut wrong);
        failed += usize::from(wrong.len() > before);
    }
    println!("{name}: {} passed, {failed} failed", cases.len() - failed);
    wrong
}

#[test]
fn the_script_model_answers_as_php_fpm() {
    let root = workspace().join("tests/apps/differential");
    let server = Server::at(&root).workers(2).start();
    let oracle = Oracle::start(&root);
    let sides =
        Sides { ours: server.address(), theirs: oracle.address(), rename: &[], is_resident: false };
    let mut wrong = Vec::new();
    let mut total = 0;
    for (theme, cases) in cases::themes() {
        total += cases.len();
        wrong.extend(run(theme, &cases, &sides));
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), server.log());
    assert!(total >= 230, "only {total} cases");
    assert_eq!(server.status()["worker_restarts_total"], 0);
}

#[test]
fn the_resident_model_answers_as_php_fpm_where_it_applies() {
    let root = workspace().join("tests/apps/differential");
    let server = Server::at(workspace().join("tests/apps/differential_resident/index.php"))
        .workers(2)
        .start();
    let oracle = Oracle::start(&root);
    // The front controller is the script; the rest of the answer is the included one's.
    let rename = &[
        ("differential_resident\\/index.php", "differential\\/dump.php"),
        ("differential_resident", "differential"),
        ("\"\\/index.php\"", "\"\\/dump.php\""),
    ];
    let sides =
        Sides { ours: server.address(), theirs: oracle.address(), rename, is_resident: true };
    let mut wrong = Vec::new();
    let mut total = 0;
    for (theme, cases) in cases::themes() {
        let cases: Vec<Case> = cases.into_iter().filter(Case::runs_resident).collect();
        total += cases.len();
        wrong.extend(run(theme, &cases, &sides));
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), server.log());
    assert!(total >= 120, "only {total} cases");
}
