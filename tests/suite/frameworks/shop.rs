//! tests/apps/symfony-shop: a full-stack Symfony application with Doctrine, security, forms and
//! Messenger. Its public/index.php is that of the Symfony recipe in every execution model.

mod own_queue;
pub(crate) mod pages;
mod plan;

use self::pages::{login, note, walk};
use self::plan::PLAN;
use crate::frameworks::crowd::{crowd, names};
use crate::frameworks::guide::console_workers;
use crate::frameworks::reloads::while_reloading;
use samovar_testkit::Postgres;
use samovar_testkit::copy::copy_of;
use samovar_testkit::masks::{Rule, Side};
use samovar_testkit::visitor::Visitor;
use samovar_testkit::walk::compare;
use samovar_testkit::{Oracle, Redis, Server, Start, eventually, workspace};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

pub(crate) const RULES: &[Rule] = &[
    Rule { name: "token", before: "[_token]\" value=\"", after: "\"" },
    // Since Symfony 7.2.
    Rule { name: "token", before: "=\"csrf-protection\" value=\"", after: "\"" },
    Rule { name: "token", before: "name=\"_csrf_token\" value=\"", after: "\"" },
    Rule { name: "token", before: "name=\"token\" value=\"", after: "\"" },
    Rule { name: "session", before: "set-cookie: PHPSESSID=", after: ";" },
    Rule { name: "a year ago", before: "PHPSESSID=<session>; expires=", after: ";" },
    Rule { name: "a year ago", before: "=deleted; expires=", after: ";" },
    Rule { name: "id", before: "id=sf-dump-", after: " " },
    Rule { name: "nonce", before: "nonce=\"", after: "\"" },
    Rule { name: "id", before: "Sfdump(\"sf-dump-", after: "\"" },
];

/// Selected by environment variables only.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Model {
    Script,
    Resident,
    Checkpoint,
}

impl Model {
    /// Starts a server with the variables that select the model, and waits for its workers.
    pub(crate) fn start(self, start: Start) -> Server {
        const RUNTIME: &str = r"Samovar\Runtime\SymfonyRuntime";
        let (start, name) = match self {
            Model::Script => (start, "script"),
            Model::Checkpoint => (start.env("APP_RUNTIME", RUNTIME), "checkpoint"),
            Model::Resident => {
                (start.env("APP_RUNTIME", RUNTIME).env("APP_SAMOVAR_MODEL", "resident"), "resident")
            }
        };
        let server = start.start();
        eventually("workers of the model", || {
            (server.status()["workers"][0]["model"] == name).then_some(())
        });
        server
    }
}

#[test]
fn shop_script_model_matches_php_fpm() {
    walks(Model::Script);
}

#[test]
fn shop_resident_model_matches_php_fpm() {
    walks(Model::Resident);
}

#[test]
fn shop_checkpoint_model_matches_php_fpm() {
    walks(Model::Checkpoint);
}

#[test]
fn shop_crowd_in_resident_model_matches_php_fpm() {
    crowds(Model::Resident);
}

#[test]
fn shop_crowd_in_checkpoint_model_matches_php_fpm() {
    crowds(Model::Checkpoint);
}

#[test]
fn shop_resident_model_on_postgresql_matches_php_fpm() {
    walks_on_postgresql(Model::Resident);
}

#[test]
fn shop_checkpoint_model_on_postgresql_matches_php_fpm() {
    walks_on_postgresql(Model::Checkpoint);
}

/// Messages written over HTTP wait in the queue. The console, which runs outside all models,
/// consumes them.
#[test]
fn shop_messages_are_consumed_by_the_console() {
    for model in [Model::Resident, Model::Checkpoint] {
        let shop = Shop::install(None);
        let server = shop.serve(model);
        let mut visitor = Visitor::new(server.address());
        login(&mut visitor, "bob");
        note(&mut visitor, "first", "The first note", None);
        note(&mut visitor, "second", "The second note", None);
        assert_eq!(shop.queued(), "2");
        assert_eq!(visitor.get("/notes.json").text().matches("\"read\":false").count(), 2);
        shop.console(&["messenger:consume", "async", "--limit=2", "--time-limit=20", "-n"]);
        assert_eq!(shop.queued(), "0");
        assert_eq!(visitor.get("/notes.json").text().matches("\"read\":true").count(), 2);
        server.stop();
    }
}

/// Consumers next to HTTP, configured as in the guide. They finish their message when the server
/// stops.
#[test]
fn shop_messages_are_consumed_by_console_workers() {
    for model in [Model::Script, Model::Resident, Model::Checkpoint] {
        let shop = Shop::install(None);
        let server = shop.serve_with(model, &console_workers("symfony"));
        let mut visitor = Visitor::new(server.address());
        login(&mut visitor, "bob");
        for (title, text) in [("first", "The first note"), ("second", "The second note")] {
            note(&mut visitor, title, text, None);
        }
        eventually("both notes are read", || {
            let notes = visitor.get("/notes.json").text();
            (notes.matches("\"read\":true").count() == 2).then_some(())
        });
        // A message is removed from the queue after its handler has finished.
        eventually("an empty queue", || (shop.queued() == "0").then_some(()));
        let status = server.status();
        let consoles = status["consoles"].as_array().cloned().unwrap_or_default();
        assert_eq!(consoles.len(), 2, "{status}");
        assert!(consoles.iter().all(|c| c["name"] == "consume" && c["restarts"] == 0), "{status}");
        let log = server.stop();
        assert!(log.contains("Consuming messages from transport"), "{log}");
        assert!(!log.contains("did not exit within"), "{log}");
    }
}

/// Another queue than the database, selected by one line of the environment.
#[test]
fn shop_messages_are_consumed_from_redis() {
    for model in [Model::Script, Model::Resident, Model::Checkpoint] {
        let redis = Redis::start();
        // As in the guide: each consumer has its own name in Redis.
        let options = "stream=messages&consumer=consumer${SAMOVAR_CONSOLE_NUMBER:-0}";
        let dsn = format!("redis://{}?{options}", redis.socket().display());
        let shop = Shop::with(&format!("MESSENGER_TRANSPORT_DSN=\"{dsn}\"\n"));
        let config = "[[console]]\ncommand = 'messenger:consume async -n'\ncount = 2\n";
        let server = shop.serve_with(model, config);
        let mut visitor = Visitor::new(server.address());
        login(&mut visitor, "bob");
        for text in ["The first note", "The second note", "The third note"] {
            note(&mut visitor, text, text, None);
        }
        eventually("all notes are read", || {
            let notes = visitor.get("/notes.json").text();
            (notes.matches("\"read\":true").count() == 3).then_some(())
        });
        eventually("both consumers", || {
            let told = redis.ask(&["XINFO", "CONSUMERS", "messages", "symfony"]);
            ["consumer1", "consumer2"].iter().all(|name| told.contains(name)).then_some(())
        });
        let status = server.status();
        assert_eq!(status["worker_restarts_total"], 0, "{status}\n{}", server.log());
        server.stop();
    }
}

fn walks(model: Model) {
    let (ours, theirs) = (Shop::install(None), Shop::install(None));
    let steps = side_by_side(&ours, &theirs, model, |_, a, b| compare(walk, RULES, a, b));
    println!("{steps} pages equal");
}

fn walks_on_postgresql(model: Model) {
    let cluster = Postgres::with(&["ours", "theirs"]);
    let [ours, theirs] = ["ours", "theirs"].map(|name| Shop::install(Some(&cluster.url(name))));
    let steps = side_by_side(&ours, &theirs, model, |_, a, b| compare(walk, RULES, a, b));
    println!("{steps} pages equal");
}

fn crowds(model: Model) {
    let (ours, theirs) = (Shop::install(None), Shop::install(None));
    let responses = side_by_side(&ours, &theirs, model, |_, a, b| crowd(&PLAN, a, b));
    println!("{responses} answers equal");
}

/// The crowd's responses are the same while generations replace each other.
#[test]
fn shop_crowd_during_reloads_matches_php_fpm() {
    for model in [Model::Script, Model::Resident, Model::Checkpoint] {
        let (ours, theirs) = (Shop::install(None), Shop::install(None));
        side_by_side(&ours, &theirs, model, |server, a, b| {
            while_reloading(server, || crowd(&PLAN, a, b))
        });
    }
}

fn side_by_side(
    ours: &Shop,
    theirs: &Shop,
    model: Model,
    check: impl Fn(&Server, &Side, &Side) -> usize,
) -> usize {
    let (server, oracle) = (ours.serve(model), Oracle::start(&theirs.public()));
    let side = Side { address: server.address(), folder: ours.path(), own: server.folder() };
    let their_side =
        Side { address: oracle.address(), folder: theirs.path(), own: oracle.folder() };
    let checked = check(&server, &side, &their_side);
    let status = server.status();
    assert_eq!(status["worker_restarts_total"], 0, "{status}\n{}", server.log());
    server.stop();
    checked
}

/// A copy of the application with its own database.
pub(crate) struct Shop(TempDir);

impl Shop {
    /// The console creates tables, products, users and the compiled container.
    pub(crate) fn install(database: Option<&str>) -> Shop {
        Shop::with(&database.map_or_else(String::new, |url| format!("DATABASE_URL=\"{url}\"\n")))
    }

    /// The same with additional environment variables.
    pub(crate) fn with(variables: &str) -> Shop {
        let shop = Shop(copy_of(&workspace().join("tests/apps/symfony-shop")));
        std::fs::write(shop.path().join(".env.local"), variables).expect("our own file");
        let users = names();
        let arguments = std::iter::once("app:install").chain(users.iter().map(String::as_str));
        shop.console(&arguments.collect::<Vec<_>>());
        shop
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn public(&self) -> std::path::PathBuf {
        self.path().join("public")
    }

    /// Starts a server with three workers that have served no request yet.
    fn serve(&self, model: Model) -> Server {
        self.serve_with(model, "")
    }

    pub(crate) fn serve_with(&self, model: Model, config: &str) -> Server {
        model.start(self.start().config(config))
    }

    pub(crate) fn start(&self) -> Start {
        Server::at(self.public()).relinked().workers(3)
    }

    /// Runs `php bin/console`, which must succeed.
    pub(crate) fn console(&self, arguments: &[&str]) -> String {
        self.php(|command| command.arg("bin/console").args(arguments))
    }

    /// Number of queued messages.
    fn queued(&self) -> String {
        const COUNT: &str = "echo (new PDO('sqlite:var/shop.db'))\
            ->query('SELECT COUNT(*) FROM messenger_messages')->fetchColumn();";
        self.php(|command| command.args(["-r", COUNT]))
    }

    fn php(&self, arguments: impl FnOnce(&mut Command) -> &mut Command) -> String {
        let mut command = Command::new(samovar_testkit::php::program("php"));
        let output = arguments(command.current_dir(self.path())).output().expect("PHP runs");
        let [out, err] =
            [output.stdout, output.stderr].map(|b| String::from_utf8_lossy(&b).into_owned());
        assert!(output.status.success(), "{command:?}: {out}{err}");
        out
    }
}
