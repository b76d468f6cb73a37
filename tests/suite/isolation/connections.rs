//! Connections to databases that were opened above the checkpoint: Bob's visit after Ann's equals
//! the same visit on a new connection.
//!
//! Ann's visits are in tests/apps/connections/cases, one way to change a session each.

use crate::isolation::stage::reforks;
use samovar_testkit::http::{Request, Response};
use samovar_testkit::{MariaDb, Postgres, Redis, Server, workspace};
use serde_json::{Value, json};
use std::collections::HashMap;
use tempfile::TempDir;

/// Names that occur in no other text: the application replaces them in its responses. They have one
/// length, which queries can see.
const DATABASES: [&str; 2] = ["tea_of_kept", "tea_of_each"];

/// Requests of a page that must keep its worker.
const PAGES: usize = 20;

/// Database servers for two applications.
enum Databases {
    Postgres(Postgres),
    MariaDb(MariaDb),
    Redis([Redis; 2]),
    Sqlite(TempDir),
}

impl Databases {
    fn of(driver: &str) -> Databases {
        match driver {
            "pgsql" | "pdo_pgsql" => Databases::Postgres(Postgres::with(&DATABASES)),
            "mysqli" | "pdo_mysql" | "pdo_mysql_emulated" => Databases::MariaDb(MariaDb::start()),
            "redis" => Databases::Redis([Redis::start(), Redis::start()]),
            "pdo_sqlite" => Databases::Sqlite(tempfile::tempdir().expect("a temporary folder")),
            _ => panic!("unknown driver {driver}"),
        }
    }

    /// Address of the server, and name of the database, for one of two applications.
    fn place(&self, number: usize) -> [String; 2] {
        let host = match self {
            Databases::Postgres(server) => server.folder().to_owned(),
            Databases::MariaDb(server) => server.socket().display().to_string(),
            Databases::Redis(servers) => servers[number].socket().display().to_string(),
            Databases::Sqlite(folder) => folder.path().display().to_string(),
        };
        let name = match self {
            Databases::Sqlite(_) => format!("{host}/{}", DATABASES[number]),
            _ => DATABASES[number].to_owned(),
        };
        [host, name]
    }
}

/// The same application on two servers with a database each.
pub(crate) struct Pair {
    pub(crate) driver: &'static str,
    pub(crate) boot: &'static str,
    /// Keeps the connection of its boot.
    pub(crate) kept: Server,
    /// Opens a connection for each visit.
    pub(crate) fresh: Server,
    _databases: Databases,
}

impl Pair {
    /// `boot`: `plain`, or `rich` for a session with temporary tables, locks and cursors.
    /// `model`: `checkpoint` or `rollback`.
    pub(crate) fn start(driver: &'static str, boot: &'static str, model: &str) -> Pair {
        let databases = Databases::of(driver);
        let start = |number: usize| {
            let [host, name] = databases.place(number);
            let front = workspace().join("tests/apps/connections/public/index.php");
            let server = Server::at(front).workers(1).env("DRIVER", driver).env("BOOT", boot);
            let server = server.env("MODEL", model).env("DATABASE_HOST", &host);
            let server = server.env("DATABASE", &name).args(["--prewarm-boot", "false"]);
            let server = server.define("display_errors", "0").define("max_execution_time", "10");
            server.define("ffi.enable", "1")
        };
        let kept = start(0).start();
        let fresh = start(1).args(["--disable-checkpoint"]).start();
        Pair { driver, boot, kept, fresh, _databases: databases }
    }

    /// The names of its cases, with their traits.
    fn cases(&self) -> Vec<(String, Value)> {
        let cases: Value = parsed(&self.fresh.get("/cases"));
        let cases = cases.as_object().expect("cases by name").clone();
        let cases: Vec<_> = cases.into_iter().filter(|(_, c)| c["boot"] == self.boot).collect();
        assert!(!cases.is_empty(), "no cases for {} {}", self.driver, self.boot);
        cases
    }

    /// Ends the worker, so that the next visitor gets a new connection.
    pub(crate) fn leave(&self) {
        assert_eq!(self.kept.get("/leave").text(), "\"left\"", "{}", self.kept.log());
    }
}

pub(crate) fn parsed(response: &Response) -> Value {
    serde_json::from_slice(&response.body)
        .unwrap_or_else(|e| panic!("{e}: {} {}", response.status, response.text()))
}

/// Runs operations.
pub(crate) fn visit(server: &Server, operations: &Value) -> Response {
    let body = operations.to_string();
    server.client().request(&Request::post("/", "application/json", body))
}

fn play(server: &Server, name: &str, who: &str) -> Response {
    let name: String = name
        .bytes()
        .map(|b| match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(b).to_string(),
            _ => format!("%{b:02X}"),
        })
        .collect();
    server.get(&format!("/case?name={name}&visitor={who}"))
}

/// The first difference between two responses; `None` if they are equal.
pub(crate) fn difference(expected: &Response, found: &Response) -> Option<String> {
    differences(expected, found).into_iter().next().map(|(_, text)| text)
}

/// The differences between two responses, with the number of the result if it is known.
pub(crate) fn differences(expected: &Response, found: &Response) -> Vec<(Option<usize>, String)> {
    if expected.status == found.status && expected.body == found.body {
        return Vec::new();
    }
    let results = [expected, found].map(|one| serde_json::from_slice::<Vec<Value>>(&one.body));
    if let [Ok(expected), Ok(found)] = results
        && expected.len() == found.len()
    {
        let text = |at: usize| format!("result {at}: {} became {}", expected[at], found[at]);
        let differs = (0..found.len()).filter(|&at| expected[at] != found[at]);
        return differs.map(|at| (Some(at), text(at))).collect();
    }
    let of = |one: &Response| format!("{} {}", one.status, one.text());
    vec![(None, format!("{} became {}", of(expected), of(found)))]
}

/// Compares Bob's visit after each of Ann's with the same visit on a new connection.
fn bob_never_meets_ann(driver: &'static str, model: &str, boots: &[&'static str]) {
    let mut wrong = Vec::new();
    for boot in boots {
        let pair = Pair::start(driver, boot, model);
        // Most visits of Bob are the same.
        let mut expected: HashMap<String, Response> = HashMap::new();
        for (name, traits) in pair.cases() {
            let expected = expected
                .entry(traits["bob"].to_string())
                .or_insert_with(|| play(&pair.fresh, &name, "bob"));
            play(&pair.kept, &name, "ann");
            let found = play(&pair.kept, &name, "bob");
            if let Some(difference) = difference(expected, &found) {
                wrong.push(format!("{name}: {difference}"));
                // The next visits must not see it.
                pair.leave();
            }
        }
        pair.kept.stop();
        pair.fresh.stop();
    }
    assert!(wrong.is_empty(), "{driver}: {} leaks\n{}", wrong.len(), wrong.join("\n"));
}

/// Checks the cases. Without a rollback Bob sees Ann's state. On a new connection Bob does not see
/// it.
fn cases_are_visible(driver: &'static str) {
    let mut wrong = Vec::new();
    for boot in BOOTS {
        let pair = Pair::start(driver, boot, "checkpoint");
        for (name, traits) in pair.cases() {
            let alone = play(&pair.fresh, &name, "bob");
            let results = |of: &Response| parsed(of).as_array().expect("results").clone();
            if traits["hidden"] == false {
                let (alone, both) = (results(&alone), results(&play(&pair.fresh, &name, "both")));
                if both.ends_with(&alone) {
                    wrong.push(format!("{name}: invisible on one connection: {both:?}"));
                }
            }
            play(&pair.fresh, &name, "ann");
            if let Some(difference) = difference(&alone, &play(&pair.fresh, &name, "bob")) {
                wrong.push(format!("{name}: visible on a new connection: {difference}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{driver}:\n{}", wrong.join("\n"));
}

pub(crate) const BOOTS: [&str; 2] = ["plain", "rich"];

macro_rules! visitors_of {
    ($($driver:ident),*) => {$(
        mod $driver {
            use super::{BOOTS, bob_never_meets_ann, cases_are_visible};

            const DRIVER: &str = stringify!($driver);

            #[test]
            fn visit_after_another_equals_visit_on_new_connection() {
                bob_never_meets_ann(DRIVER, "checkpoint", &BOOTS);
            }

            #[test]
            #[ignore = "checks the cases, not the server: make connections"]
            fn cases_are_visible_without_rollback() {
                cases_are_visible(DRIVER);
            }
        }
    )*};
}

visitors_of!(pgsql, pdo_pgsql, mysqli, pdo_mysql, pdo_mysql_emulated, redis, pdo_sqlite);

/// The same for a handler that is rolled back after each request.
#[test]
fn rolled_back_handler_equals_visit_on_new_connection() {
    for (driver, boot) in [("pgsql", "rich"), ("mysqli", "rich"), ("redis", "plain")] {
        bob_never_meets_ann(driver, "rollback", &[boot]);
    }
}

/// A page of plain statements keeps its worker. Otherwise a server that always leaves would pass
/// the other tests.
fn plain_page_keeps_worker(driver: &'static str, page: &Value) {
    let pair = Pair::start(driver, "plain", "checkpoint");
    let expected = visit(&pair.fresh, page);
    assert!(!expected.text().contains("error"), "{}", expected.text());
    let first = visit(&pair.kept, page);
    for n in 0..PAGES {
        let found = visit(&pair.kept, page);
        assert_eq!(difference(&expected, &found), None, "{driver}, page {n}");
        let [first, now] = [&first, &found].map(|one| one.header("x-process").map(str::to_owned));
        assert_eq!(now, first, "{driver}, page {n}: {}", pair.kept.status()["image"]);
    }
    assert_eq!(reforks(&pair.kept), 0, "{driver}: {}", pair.kept.status()["image"]);
    pair.kept.stop();
}

/// Ten statements, and the transactions and prepared statements of the drivers.
fn sql_page(placeholders: [&str; 2]) -> Value {
    let [first, second] = placeholders;
    json!([
        ["query", ["SELECT n, flavour FROM flavours ORDER BY n LIMIT 5"]],
        ["params", [format!("SELECT flavour FROM flavours WHERE n = {first}"), [1]]],
        ["params", [format!("INSERT INTO flavours VALUES ({first}, {second})"), [9, "white"]]],
        [
            "params",
            [format!("UPDATE flavours SET flavour = {first} WHERE n = {second}"), ["red", 9]]
        ],
        [
            "query",
            ["SELECT COUNT(*), MIN(flavour), MAX(LENGTH(flavour)) FROM flavours GROUP BY n > 1"]
        ],
        [
            "query",
            ["SELECT a.n, b.flavour FROM flavours a LEFT JOIN flavours b ON a.n = b.n + 1
            WHERE LOWER(a.flavour) <> 'none' ORDER BY a.n"]
        ],
        ["begin", []],
        ["query", ["INSERT INTO flavours VALUES (10, 'blue; -- /* it''s')"]],
        ["commit", []],
        ["begin", []],
        ["query", ["DELETE FROM flavours"]],
        ["rollBack", []],
        ["execute", ["flavour", [2]]],
        ["execute", ["echo", ["of the page"]]],
        ["prepare", ["own", format!("SELECT flavour FROM flavours WHERE n = {first}")]],
        ["execute", ["own", [9]]],
        ["execute", ["own", [10]]],
        ["close", ["own"]],
        ["query", ["DELETE FROM flavours WHERE n IN (9, 10)"]],
    ])
}

#[test]
fn plain_page_on_postgresql_keeps_worker() {
    for driver in ["pgsql", "pdo_pgsql"] {
        plain_page_keeps_worker(driver, &sql_page(["$1", "$2"]));
    }
}

#[test]
fn plain_page_on_mysql_keeps_worker() {
    for driver in ["mysqli", "pdo_mysql", "pdo_mysql_emulated"] {
        plain_page_keeps_worker(driver, &sql_page(["?", "?"]));
    }
}

#[test]
fn plain_page_on_sqlite_keeps_worker() {
    plain_page_keeps_worker("pdo_sqlite", &sql_page(["?", "?"]));
}

#[test]
fn plain_page_on_redis_keeps_worker() {
    let page = json!([
        ["call", ["set", ["cup", "green"]]],
        ["call", ["get", ["cup"]]],
        ["call", ["incrBy", ["count", 2]]],
        ["call", ["rPush", ["list", "a", "b"]]],
        ["call", ["lRange", ["list", 0, -1]]],
        ["call", ["hSet", ["hash", "a", "1"]]],
        ["call", ["hGetAll", ["hash"]]],
        ["call", ["multi", []]],
        ["call", ["set", ["cup", "black"]]],
        ["call", ["exec", []]],
        ["raw", ["EVAL", ["return redis.call('get', 'cup')", "0"]]],
        ["call", ["del", ["cup", "count", "list", "hash"]]],
    ]);
    plain_page_keeps_worker("redis", &page);
}
