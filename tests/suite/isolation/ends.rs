//! Ends of a request: the client receives the response of php-fpm, all actions of php-fpm at a
//! request's end are done, and the next request meets the same process in its initial state.

use crate::isolation::stage::{json, start};
use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Oracle, Server, eventually, php, workspace};
use serde_json::Value;
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// Text that each response must contain, or, after an error, the log.
const MARKERS: &[(&str, u16, &str)] = &[
    ("return", 200, "returned"),
    ("exit", 200, "left"),
    ("exit deep", 200, "12deep"),
    ("exception", 500, "nobody catches it"),
    ("exception handled", 200, "handled: a handler shows it"),
    ("error", 500, "undefined function"),
    ("fatal error", 500, "as fatal as it gets"),
    ("compile error", 500, "Fatal error"),
    ("memory", 500, "Allowed memory size"),
    ("memory in pieces", 500, "Allowed memory size"),
    ("recursion", 500, "Allowed memory size"),
    ("time", 500, "Maximum execution time"),
    ("sent already", 200, "sent"),
    ("finished early", 200, "finished"),
    ("buffers left open", 200, "open"),
    ("shutdown function registers", 200, "first second"),
    ("fiber exits", 200, "fiber"),
    ("generator exits", 200, "generator"),
    ("error handler exits", 200, "error handler"),
    ("session handler throws", 200, "page"),
];

/// With displayed errors php-fpm's status is 200; with hidden ones it is 500.
const SHOWN: (&str, &str) = ("display_errors", "1");
const HIDDEN: (&str, &str) = ("display_errors", "0");

#[derive(Debug, PartialEq)]
struct End {
    status: u16,
    text: String,
    complete: bool,
    artifacts: Value,
}

/// A client, and a folder for the files that scripts write.
struct Visitor<'a> {
    connect: &'a dyn Fn() -> Client,
    folder: TempDir,
}

impl Visitor<'_> {
    fn new(connect: &dyn Fn() -> Client) -> Visitor<'_> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        open_to_all(folder.path());
        Visitor { connect, folder }
    }

    fn target(&self, how: &str, below: &str) -> String {
        let folder = self.folder.path().join(below);
        format!("/ends.php?how={}&folder={}", how.replace(' ', "%20"), folder.display())
    }

    fn report(&self, how: &str, below: &str) -> Value {
        json(&(self.connect)().get(&self.target(how, below)))
    }

    /// State that the next request sees.
    fn state(&self) -> Value {
        self.report("state", "")
    }

    fn forget_traces(&self) {
        let ends = self.folder.path().join("ends");
        let _ = std::fs::remove_dir_all(&ends);
        std::fs::create_dir(&ends).expect("our own folder");
        open_to_all(&ends);
    }

    /// Files written at the request's end. They may follow the response. PHP closes streams and
    /// then objects or, where destructors run, objects and then streams. Both are the last steps.
    fn artifacts(&self) -> Value {
        eventually("the request's end", || {
            let artifacts = self.report("artifacts", "ends");
            (artifacts["zip"] == "green" && artifacts["gz"] == "compressed").then_some(artifacts)
        })
    }

    fn end(&self, how: &str) -> End {
        self.forget_traces();
        let response = (self.connect)().get(&self.target(how, "ends"));
        let text = response.text().replace(&self.folder.path().display().to_string(), "FOLDER");
        End {
            status: response.status,
            text,
            complete: response.complete,
            artifacts: self.artifacts(),
        }
    }
}

pub(crate) fn open_to_all(folder: &Path) {
    let all = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(folder, all).expect("our own folder");
}

fn names(visitor: &Visitor) -> Vec<String> {
    let names = visitor.report("names", "");
    let names = names.as_array().expect("a list").iter().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

fn serve(model: &str, define: (&str, &str)) -> Server {
    let start = start("ends.php").workers(1).env("ISOLATION_MODEL", model);
    start.define(define.0, define.1).start()
}

/// The same application served by php-fpm.
pub(crate) fn oracle() -> Oracle {
    let errors = php::all_but_deprecations();
    Oracle::with(&workspace().join("tests/apps/isolation"), &[("error_reporting", &errors)])
}

#[test]
fn each_request_end_below_checkpoint_matches_php_fpm() {
    let (server, oracle) = (serve("checkpoint", SHOWN), oracle());
    let (ours, theirs) = (|| server.client(), || oracle.client());
    let (ours, theirs) = (Visitor::new(&ours), Visitor::new(&theirs));
    let mut wrong = Vec::new();
    for how in names(&ours) {
        let (ours, theirs) = (ours.end(&how), theirs.end(&how));
        if ours != theirs {
            wrong.push(format!("{how}:\n{}", parted(&ours, &theirs)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn parted(ours: &End, theirs: &End) -> String {
    let mut text = String::new();
    if (ours.status, &ours.text, ours.complete) != (theirs.status, &theirs.text, theirs.complete) {
        let _ = writeln!(text, "  ours: {} {} {}", ours.status, ours.complete, ours.text);
        let _ = writeln!(text, "  theirs: {} {} {}", theirs.status, theirs.complete, theirs.text);
    }
    text + &differences(&theirs.artifacts, &ours.artifacts)
}

#[test]
fn each_request_end_leaves_clean_process() {
    for model in ["checkpoint", "rollback"] {
        let server = serve(model, HIDDEN);
        let connect = || server.client();
        let visitor = Visitor::new(&connect);
        let mut before = visitor.state();
        let mut wrong = Vec::new();
        for how in names(&visitor) {
            let end = visitor.end(&how);
            wrong.extend(unexpected(&how, &end, &server));
            let after = visitor.state();
            if after != before {
                wrong.push(format!("after {how}: {}", differences(&before, &after)));
                before = after;
            }
        }
        assert!(wrong.is_empty(), "{model}: {}", wrong.join("\n"));
        let status = server.status();
        assert_eq!(status["worker_restarts_total"], 0, "{model}: {status}");
        assert_eq!(status["image"]["refork_total"], 0, "{model}: {status}");
        server.stop();
    }
}

fn differences(before: &Value, after: &Value) -> String {
    let lines = before.as_object().expect("a state").iter();
    let differ = lines.filter(|(key, value)| after[key.as_str()] != **value);
    let each = differ.map(|(key, value)| format!("{key}: {value} became {}", after[key.as_str()]));
    each.collect::<Vec<_>>().join("; ")
}

fn unexpected(how: &str, end: &End, server: &Server) -> Option<String> {
    let (_, status, text) = MARKERS.iter().find(|(name, ..)| *name == how)?;
    let told = end.text.contains(text);
    if *status == 500 {
        server.wait_for_log(text);
    }
    let right = end.status == *status && (told || *status == 500) && end.complete;
    (!right).then(|| format!("{how}: {end:?}"))
}

#[test]
fn client_disconnect_leaves_clean_process() {
    let oracle = oracle();
    let theirs = || oracle.client();
    let expected = abort(&Visitor::new(&theirs));
    for model in ["checkpoint", "rollback"] {
        let server = serve(model, HIDDEN);
        let ours = || server.client();
        let visitor = Visitor::new(&ours);
        let before = visitor.state();
        assert_eq!(abort(&visitor), expected, "{model}");
        assert_eq!(visitor.state(), before, "{model}");
        assert_eq!(server.status()["worker_restarts_total"], 0, "{model}");
    }
}

/// Reads the beginning of an endless response, and closes the connection.
fn abort(visitor: &Visitor) -> Value {
    visitor.forget_traces();
    let mut client = (visitor.connect)();
    client.send(&Request::get(&visitor.target("endless", "ends")).bytes());
    assert_eq!(client.read_head().expect("a head").status, 200);
    client.read_chunk().expect("a piece");
    client.abort();
    visitor.artifacts()
}
