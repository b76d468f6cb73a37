//! Applications whose boot opens the connection to the database: how often a request keeps it, and
//! how often the session is reset or the worker replaced.

use crate::frameworks::laravel::{Copy, RULES as LARAVEL_RULES, RUNTIME, steps};
use crate::frameworks::shop::{Model, RULES as SHOP_RULES, Shop, pages};
use samovar_testkit::masks::Side;
use samovar_testkit::walk::compare;
use samovar_testkit::{MariaDb, Oracle, Postgres, Server};

/// The boot of the application then connects.
const CONNECT: (&str, &str) = ("CONNECT_ABOVE", "1");

/// The walk registers a name twice that exists. After the error of PostgreSQL the session is reset.
const RESETS_OF_SHOP: u64 = 2;

/// Nearly all requests must keep the connection: these applications use transactions, prepared
/// statements and the last inserted id, but no state of a session.
fn assert_kept(name: &str, server: &Server, requests: usize, resets: u64) {
    let status = server.status();
    let image = &status["image"];
    println!("{name}: {requests} requests, {image}");
    assert_eq!(image["mode"], "worker", "the connection is opened above: {status}");
    assert_eq!(image["connection_resets_total"], resets, "{image}\n{}", server.log());
    let replaced = image["refork_reasons"]["connection"].as_u64().unwrap_or_default();
    assert_eq!(replaced, 0, "{image}\n{}", server.log());
}

#[test]
fn symfony_with_doctrine_keeps_connection_to_postgresql() {
    let cluster = Postgres::with(&["ours", "theirs"]);
    let [ours, theirs] = ["ours", "theirs"].map(|name| Shop::install(Some(&cluster.url(name))));
    let server = Model::Checkpoint.start(ours.start().env(CONNECT.0, CONNECT.1));
    let oracle = Oracle::start(&theirs.public());
    let side = Side { address: server.address(), folder: ours.path(), own: server.folder() };
    let their_side =
        Side { address: oracle.address(), folder: theirs.path(), own: oracle.folder() };
    let requests = compare(pages::walk, SHOP_RULES, &side, &their_side);
    assert_kept("Symfony with Doctrine", &server, requests, RESETS_OF_SHOP);
    server.stop();
}

#[test]
fn laravel_keeps_connection_to_mariadb() {
    let database = MariaDb::start();
    let [ours, theirs] = ["ours", "theirs"].map(|name| {
        database.query(&format!("CREATE DATABASE {name}"));
        Copy::with(&format!(
            "SESSION_DRIVER=database\nDB_CONNECTION=mysql\nDB_SOCKET={}\nDB_DATABASE={name}\n",
            database.socket().display()
        ))
    });
    let server = ours.start_with(&RUNTIME, |start| start.env(CONNECT.0, CONNECT.1));
    let oracle = Oracle::start(&theirs.path().join("public"));
    let side = Side { address: server.address(), folder: ours.path(), own: server.folder() };
    let their_side =
        Side { address: oracle.address(), folder: theirs.path(), own: oracle.folder() };
    let requests = compare(steps::all_but_fatal, LARAVEL_RULES, &side, &their_side);
    assert_kept("Laravel", &server, requests, 0);
    server.stop();
}
