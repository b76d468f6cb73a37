//! examples/slim: routes, JSON, middleware, PSR-7 uploads; script model and resident.

use crate::applications::example::is_the_oracles;
use samovar_testkit::http::Request;
use samovar_testkit::masks::Rule;
use samovar_testkit::visitor::{PNG, Visitor, form, multipart};

const RULES: &[Rule] = &[Rule { name: "session", before: "set-cookie: PHPSESSID=", after: ";" }];

#[test]
fn slim_pages_match_php_fpm() {
    is_the_oracles("slim", "public", walk, RULES);
}

#[test]
fn resident_slim_pages_match_php_fpm() {
    is_the_oracles("slim", "public/resident.php", walk, RULES);
}

fn walk(visitor: &mut Visitor) {
    pages(visitor);
    todos(visitor);
    uploads(visitor);
}

fn pages(visitor: &mut Visitor) {
    for target in
        ["/", "/hello/Ann", "/hello/Zo%C3%AB?greeting=Bon+jour", "/hello/", "/hello/a%2Fb"]
    {
        visitor.get(target);
    }
    for target in ["/old", "/boom", "/no/such/page", "/no/such/file.css", "/index.php/hello/Ann"] {
        visitor.get(target);
    }
    visitor.send("HEAD /", Request::new("HEAD", "/"));
    visitor.send("OPTIONS /old", Request::new("OPTIONS", "/old"));
    visitor.get("/admin");
    for (step, login) in
        [("wrong password", "YW5uOmNvZmZlZQ=="), ("right password", "YW5uOnRlYQ==")]
    {
        let request = Request::get("/admin").header("Authorization", &format!("Basic {login}"));
        visitor.send(step, request);
    }
}

fn todos(visitor: &mut Visitor) {
    visitor.get("/todos");
    for title in
        ["{\"title\": \"Boil water\"}", "{\"title\": \"\\u8336\"}", "{\"title\": 3}", "{", ""]
    {
        let request = Request::post("/todos", "application/json", title);
        visitor.send(&format!("POST {title}"), request);
    }
    visitor.send("as a form", form("/todos", &[("title", "Pour & wait")]));
    let xml = Request::post("/todos", "application/xml", "<todo><title>Drink</title></todo>");
    visitor.send("as XML", xml);
    visitor.get("/todos");
    visitor.get("/todos/2");
    visitor.get("/todos/99");
    visitor.send("DELETE /todos/2", Request::new("DELETE", "/todos/2"));
    visitor.get("/todos");
    visitor.send("PATCH /todos", Request::new("PATCH", "/todos"));
    visitor.send("HEAD /todos", Request::new("HEAD", "/todos"));
}

fn uploads(visitor: &mut Visitor) {
    let (large, huge) = (vec![b'x'; 100 * 1024], vec![b'y'; 160 * 1024]);
    let files = [
        ("files[]", "tea.png", "image/png", PNG),
        ("files[]", "large.txt", "text/plain", &large[..]),
        ("files[]", "", "application/octet-stream", b"".as_slice()),
    ];
    visitor.send("uploads", multipart("/upload", &[("note", "Zoë's"), ("list[a]", "1")], &files));
    let files = [("files[]", "huge.txt", "text/plain", &huge[..])];
    visitor.send("too large for PHP", multipart("/upload", &[], &files));
    visitor.send("no file", multipart("/upload", &[("note", "only")], &[]));
    let put = Request::new("PUT", "/body").header("Content-Type", "application/octet-stream");
    visitor.send("PUT of bytes", put.body(large));
}
