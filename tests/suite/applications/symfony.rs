//! examples/symfony: pages, session, form, upload, JSON, errors; script model and resident.

use crate::applications::example::is_the_oracles;
use crate::applications::forms::post_message;
use samovar_testkit::http::Request;
use samovar_testkit::masks::Rule;
use samovar_testkit::visitor::{PNG, Visitor, multipart};

const RULES: &[Rule] = &[
    Rule { name: "token", before: "name=\"message[_token]\" value=\"", after: "\"" },
    // Since Symfony 7.2.
    Rule { name: "token", before: "=\"csrf-protection\" value=\"", after: "\"" },
    Rule { name: "session", before: "set-cookie: PHPSESSID=", after: ";" },
    Rule { name: "a year ago", before: "PHPSESSID=<session>; expires=", after: ";" },
];

#[test]
fn symfony_pages_match_php_fpm() {
    is_the_oracles("symfony", "public", walk, RULES);
}

#[test]
fn resident_symfony_pages_match_php_fpm() {
    is_the_oracles("symfony", "public/resident.php", walk, RULES);
}

fn walk(visitor: &mut Visitor) {
    pages(visitor);
    messages(visitor);
    json(visitor);
    files(visitor);
}

fn pages(visitor: &mut Visitor) {
    for target in ["/", "/", "/?from=%3Cb%3E", "/old/wiki", "/countdown", "/countdown/12", "/boom"]
    {
        visitor.get(target);
    }
    for target in
        ["/no/such/page", "/message/", "/countdown/100", "/%C3%A4?x[]=1&x[]=2", "/index.php"]
    {
        visitor.get(target);
    }
    visitor.send("HEAD /", Request::new("HEAD", "/"));
    // Not `/`: nginx rejects all other methods for a folder.
    visitor.send("DELETE /message", Request::new("DELETE", "/message"));
    visitor.send("OPTIONS /message", Request::new("OPTIONS", "/message"));
}

fn messages(visitor: &mut Visitor) {
    post_message(visitor, "a message", "Ann", "Tea, please.", None);
    visitor.send("its flash", Request::get("/"));
    visitor.send("no flash any more", Request::get("/"));
    post_message(
        visitor,
        "a picture",
        "Zoë & <Bob>",
        "With sugar — “two”.",
        Some(("tea.png", "image/png", PNG)),
    );
    visitor.send("the picture's flash", Request::get("/"));
    post_message(visitor, "no name, short text", "", "Tea", None);
    post_message(
        visitor,
        "no picture",
        "Ann",
        "Not a picture.",
        Some(("tea.txt", "image/png", b"plain text")),
    );
    let large = vec![b'x'; 100 * 1024];
    post_message(
        visitor,
        "too large for the form",
        "Ann",
        "Too large.",
        Some(("large.png", "image/png", &large)),
    );
    let huge = vec![b'x'; 160 * 1024];
    post_message(
        visitor,
        "too large for PHP",
        "Ann",
        "Too large.",
        Some(("huge.png", "image/png", &huge)),
    );
    let fields = [
        ("message[name]", "Eve"),
        ("message[text]", "Without token"),
        ("message[_token]", "forged"),
    ];
    visitor.send("forged token", multipart("/message", &fields, &[]));
    visitor.send("goodbye", Request::form("/goodbye", ""));
    visitor.send("a stranger again", Request::get("/"));
}

fn json(visitor: &mut Visitor) {
    visitor.get("/api/square/12");
    visitor.get("/api/square/-3");
    visitor.get("/api/square/x");
    let body = "{\"name\": \"Ann\", \"list\": [1, 2.5, null, \"\\u00e4\"]}";
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let request =
            Request::new(method, "/api/echo?a=1&b[]=2").header("Content-Type", "application/json");
        visitor.send(&format!("{method} /api/echo"), request.body(body));
    }
    visitor.send("no JSON", Request::post("/api/echo", "application/json", "{"));
    visitor.send("no body", Request::new("POST", "/api/echo"));
    let put = Request::new("PUT", "/api/session").header("Content-Type", "application/json");
    visitor.send("a name", put.body("{\"name\": \"Ann\"}"));
    visitor.get("/api/session");
    visitor.get("/api/session");
}

fn files(visitor: &mut Visitor) {
    let style = visitor.get("/style.css");
    let etag = style.header("etag").expect("static files have one").to_owned();
    visitor.send("style.css again", Request::get("/style.css").header("If-None-Match", &etag));
    visitor.send("a part of style.css", Request::get("/style.css").header("Range", "bytes=5-9"));
    visitor.send("HEAD style.css", Request::new("HEAD", "/style.css"));
    let download = visitor.get("/download");
    let etag = download.header("etag").expect("the application sets it").to_owned();
    visitor.send("download again", Request::get("/download").header("If-None-Match", &etag));
    visitor.send("a part of it", Request::get("/download").header("Range", "bytes=0-9"));
    visitor.send("HEAD download", Request::new("HEAD", "/download"));
}
