//! examples/symfony with its checkpoint.php: pages, session, form, upload, JSON, errors.

use crate::applications::forms;
use crate::response_isolation::differential::{REQUESTS, Scene, Trial, assert_rolled_back};
use samovar_testkit::copy::copy_of;
use samovar_testkit::http::Request;
use samovar_testkit::masks::{Rule, Side};
use samovar_testkit::visitor::{PNG, Visitor, multipart};
use samovar_testkit::{Oracle, Server, workspace};

const RULES: &[Rule] = &[
    Rule { name: "token", before: "name=\"message[_token]\" value=\"", after: "\"" },
    // Since Symfony 7.2.
    Rule { name: "token", before: "=\"csrf-protection\" value=\"", after: "\"" },
    Rule { name: "session", before: "set-cookie: PHPSESSID=", after: ";" },
    Rule { name: "a year ago", before: "PHPSESSID=<session>; expires=", after: ";" },
];

#[test]
fn symfony_responses_equal_those_of_fresh_process() {
    let example = workspace().join("examples/symfony");
    let (our_copy, their_copy) = (copy_of(&example), copy_of(&example));
    // The reference server runs the same file as its front controller.
    let public = their_copy.path().join("public");
    std::fs::copy(public.join("checkpoint.php"), public.join("index.php")).expect("our own file");
    let theirs = Oracle::start(&public);
    let scenes = scenes();
    let fresh = Side { address: theirs.address(), folder: their_copy.path(), own: theirs.folder() };
    let trial = Trial::learn(&scenes, RULES, &fresh);
    let ours =
        Server::at(our_copy.path().join("public/checkpoint.php")).relinked().workers(2).start();
    Trial::run(&[&trial], &ours, our_copy.path(), REQUESTS);
    assert_rolled_back(&ours, "shared");
    ours.stop();
}

fn scenes() -> Vec<Scene> {
    let mut scenes: Vec<Scene> = [
        "/",
        "/?from=%3Cb%3E",
        "/message",
        "/old/wiki",
        "/countdown/12",
        "/boom",
        "/no/such/page",
        "/countdown/100",
        "/%C3%A4?x[]=1&x[]=2",
        "/api/square/12",
        "/api/square/x",
        "/download",
    ]
    .into_iter()
    .map(Scene::get)
    .collect();
    for (name, request) in [
        ("HEAD /", Request::new("HEAD", "/")),
        ("DELETE /message", Request::new("DELETE", "/message")),
        ("a part of the download", Request::get("/download").header("Range", "bytes=0-9")),
        ("no JSON", Request::post("/api/echo", "application/json", "{")),
        ("JSON", Request::post("/api/echo?a=1&b[]=2", "application/json", "{\"list\": [1, null]}")),
        (
            "a session nobody has",
            Request::get("/").header("Cookie", "PHPSESSID=0123456789abcdefghijklmnop"),
        ),
        ("goodbye of a stranger", Request::form("/goodbye", "")),
        (
            "forged token",
            multipart("/message", &[("message[name]", "Eve"), ("message[_token]", "x")], &[]),
        ),
    ] {
        scenes.push(Scene::one(name, request));
    }
    scenes.push(Scene::new("comes back", |visitor| {
        for _ in 0..3 {
            visitor.get("/");
        }
    }));
    scenes.push(Scene::new("a message", |visitor| {
        post_message(visitor, "Ann", "Tea, please.", None);
        visitor.send("its flash", Request::get("/"));
        visitor.send("no flash any more", Request::get("/"));
        visitor.send("goodbye", Request::form("/goodbye", ""));
        visitor.send("a stranger again", Request::get("/"));
    }));
    scenes.push(Scene::new("a picture", |visitor| {
        post_message(visitor, "Zoë & <Bob>", "With sugar — “two”.", Some(PNG));
        visitor.send("the picture's flash", Request::get("/"));
    }));
    scenes.push(Scene::new("what the form refuses", |visitor| {
        post_message(visitor, "", "Tea", None);
        post_message(visitor, "Ann", "Not a picture.", Some(b"plain text"));
        post_message(visitor, "Ann", "Too large for PHP.", Some(&vec![b'x'; 160 * 1024]));
    }));
    scenes.push(Scene::new("a session by JSON", |visitor| {
        let put = Request::new("PUT", "/api/session").header("Content-Type", "application/json");
        visitor.send("a name", put.body("{\"name\": \"Ann\"}"));
        visitor.get("/api/session");
        visitor.get("/");
    }));
    scenes
}

/// Posts the form, with a picture if there is one.
fn post_message(visitor: &mut Visitor, name: &str, text: &str, picture: Option<&[u8]>) {
    let file = picture.map(|content| ("tea.png", "image/png", content));
    forms::post_message(visitor, "post", name, text, file);
}
