//! examples/symfony with its checkpoint.php: pages, session, form, upload, JSON, errors.

use crate::copy::copy_of;
use crate::differential::{REQUESTS, Scene, Trial, assert_rolled_back};
use crate::masks::{Rule, Side};
use crate::visitor::{Visitor, between, multipart};
use samovar_testkit::http::Request;
use samovar_testkit::{Oracle, Server, workspace};

const RULES: &[Rule] = &[
    Rule { name: "token", before: "name=\"message[_token]\" value=\"", after: "\"" },
    Rule { name: "session", before: "set-cookie: PHPSESSID=", after: ";" },
    Rule { name: "a year ago", before: "PHPSESSID=<session>; expires=", after: ";" },
];

/// The smallest PNG there is: what `finfo` takes for a picture.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\
    \x1f\x15\xc4\x89\0\0\0\rIDAT\
    x\x9cc\xfc\xcf\xc0P\x0f\0\x04\x85\x01\x80\x84\xa9\x8c!\0\0\0\0IEND\xaeB`\x82";

#[test]
fn symfony() {
    let example = workspace().join("examples/symfony");
    let (our_copy, their_copy) = (copy_of(&example), copy_of(&example));
    // The oracle runs the same file, as its front controller.
    let public = their_copy.path().join("public");
    std::fs::copy(public.join("checkpoint.php"), public.join("index.php")).expect("our own file");
    let theirs = Oracle::start(&public);
    let scenes = scenes();
    let fresh = Side { address: theirs.address(), folder: their_copy.path(), own: theirs.folder() };
    let trial = Trial::learn(&scenes, RULES, &fresh);
    let ours = Server::at(our_copy.path().join("public/checkpoint.php")).workers(2).start();
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

/// Posts the form with its token.
fn post_message(visitor: &mut Visitor, name: &str, text: &str, picture: Option<&[u8]>) {
    let page = visitor.get("/message").text();
    let token = between(&page, "name=\"message[_token]\" value=\"", "\"").to_owned();
    let fields = [
        ("message[name]", name),
        ("message[text]", text),
        ("message[send]", ""),
        ("message[_token]", &token),
    ];
    let files = picture.map(|content| ("message[picture]", "tea.png", "image/png", content));
    visitor.send("post", multipart("/message", &fields, &files.into_iter().collect::<Vec<_>>()));
}
