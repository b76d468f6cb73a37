//! A visitor's walk through all pages.

use samovar_testkit::http::{Request, Response};
use samovar_testkit::visitor::{PNG, Upload, Visitor, between, form, multipart};

/// For servers of `index.php`.
pub(super) fn all_by_name(visitor: &mut Visitor) {
    visitor.get("/index.php");
    visitor.get("/index.php/whoami?a=1");
    all(visitor);
}

pub(super) fn all(visitor: &mut Visitor) {
    all_but_fatal(visitor);
    visitor.get("/fatal");
    visitor.get("/whoami");
}

pub(crate) fn all_but_fatal(visitor: &mut Visitor) {
    pages(visitor);
    accounts(visitor);
    notes(visitor);
    strangers(visitor);
    outputs(visitor);
    ends(visitor);
    api(visitor);
}

/// Sends a form with the token of its page.
fn post(
    visitor: &mut Visitor,
    step: &str,
    page: &str,
    target: &str,
    fields: &[(&str, &str)],
    file: Option<Upload>,
) -> Response {
    let text = visitor.send(&format!("{step}: the form"), Request::get(page)).text();
    let token = between(&text, "name=\"csrf-token\" content=\"", "\"").to_owned();
    let fields: Vec<_> = fields.iter().copied().chain([("_token", token.as_str())]).collect();
    let request = match file {
        Some(file) => multipart(target, &fields, &[file]),
        None => form(target, &fields),
    };
    visitor.send(step, request)
}

/// Creates an account with the password `secret`, and logs its visitor in.
pub(super) fn register(visitor: &mut Visitor, name: &str) {
    let email = format!("{name}@example.org");
    let fields = [
        ("name", name),
        ("email", &email),
        ("password", "secret"),
        ("password_confirmation", "secret"),
    ];
    post(visitor, "register", "/register", "/register", &fields, None);
    visitor.send("registered", Request::get("/notes"));
}

pub(super) fn log_in(visitor: &mut Visitor, name: &str, password: &str) {
    let email = format!("{name}@example.org");
    let fields = [("email", email.as_str()), ("password", password)];
    post(visitor, "log in", "/login", "/login", &fields, None);
    visitor.send("logged in", Request::get("/whoami"));
}

pub(super) fn log_out(visitor: &mut Visitor) {
    post(visitor, "log out", "/", "/logout", &[], None);
    visitor.send("logged out", Request::get("/whoami"));
}

/// Stores a note, with a file's name, type and content.
pub(super) fn store(
    visitor: &mut Visitor,
    title: &str,
    text: &str,
    file: Option<(&str, &str, &[u8])>,
) {
    let fields = [("title", title), ("text", text)];
    let file = file.map(|(name, kind, content)| ("attachment", name, kind, content));
    post(visitor, &format!("store {title}"), "/notes", "/notes", &fields, file);
    visitor.send("stored", Request::get("/whoami"));
}

fn pages(visitor: &mut Visitor) {
    for target in ["/", "/", "/?a=1&b[]=%3Cb%3E", "/old", "/whoami?x=%C3%A4"] {
        visitor.get(target);
    }
    for target in ["/locale/de", "/", "/no/such/page", "/whoami", "/locale/fr", "/locale/en", "/"] {
        visitor.get(target);
    }
    visitor.send("HEAD /", Request::new("HEAD", "/"));
    visitor.send("DELETE /whoami", Request::new("DELETE", "/whoami"));
    visitor.send("OPTIONS /whoami", Request::new("OPTIONS", "/whoami"));
    visitor.get("/style.css");
    let signed = visitor.get("/signed").text();
    visitor.send("signed", Request::get(&signed));
    visitor.send("forged", Request::get(&signed.replace("for=Ann", "for=Bob")));
}

fn accounts(visitor: &mut Visitor) {
    visitor.get("/notes");
    visitor.get("/login");
    log_in(visitor, "ann", "secret");
    visitor.send("wrong, told", Request::get("/login"));
    let fields = [("name", "a b"), ("email", "none"), ("password", "x")];
    post(visitor, "wrong account", "/register", "/register", &fields, None);
    visitor.send("wrong account, told", Request::get("/register"));
    visitor.send("no longer told", Request::get("/register"));
    visitor.send("forged", form("/register", &[("name", "eve"), ("_token", "forged")]));
    register(visitor, "bob");
    log_out(visitor);
    register(visitor, "ann");
    log_out(visitor);
    visitor.send("intended", Request::get("/notes?page=1"));
    log_in(visitor, "ann", "coffee");
    log_in(visitor, "ann", "secret");
    visitor.get("/");
}

fn notes(visitor: &mut Visitor) {
    store(visitor, "Tea & <milk>", "Two spoons of it.", None);
    store(visitor, "Picture", "It is a small one.", Some(("tea.png", "image/png", PNG)));
    store(visitor, "Zoë", "Mit Anhang.", Some(("grüße.txt", "text/plain", "Grüße".as_bytes())));
    store(visitor, "", "no", None);
    visitor.send("what is wrong", Request::get("/notes"));
    let html = b"<html><body>no</body></html>".as_slice();
    store(visitor, "Not allowed", "It is HTML.", Some(("page.html", "text/html", html)));
    visitor.send("not allowed, told", Request::get("/notes"));
    let (large, huge) = (vec![b'x'; 100 * 1024], vec![b'x'; 160 * 1024]);
    store(visitor, "Large", "Too large for a note.", Some(("l.txt", "text/plain", &large)));
    visitor.send("large, told", Request::get("/notes"));
    store(visitor, "Huge", "Too large for PHP.", Some(("h.txt", "text/plain", &huge)));
    visitor.send("huge, told", Request::get("/notes"));
    store(visitor, "Fourth", "The next page has it.", None);
    for target in ["/notes", "/notes?page=2", "/notes?page=2&x=1", "/notes?page=9"] {
        visitor.get(target);
    }
    for target in ["/notes/1", "/notes/2", "/notes/3/attachment", "/notes/2/attachment"] {
        visitor.get(target);
    }
    visitor.get("/notes/1/attachment");
    visitor.get("/notes/99");
    let put = [("title", "Changed"), ("text", "Another text."), ("_method", "PUT")];
    post(visitor, "change", "/notes/1", "/notes/1", &put, None);
    visitor.get("/notes/1");
    post(visitor, "delete", "/notes/2", "/notes/2", &[("_method", "DELETE")], None);
    visitor.get("/notes/2");
    visitor.get("/notes");
}

fn strangers(visitor: &mut Visitor) {
    visitor.get("/notes/ann:1");
    log_out(visitor);
    visitor.get("/notes/ann:1");
    log_in(visitor, "bob", "secret");
    visitor.get("/notes/ann:1");
    visitor.get("/notes/1");
    visitor.get("/notes");
    visitor.get("/locale/de");
    store(visitor, "Bobs", "Bob spricht deutsch.", None);
    visitor.get("/notes");
    log_out(visitor);
}

fn outputs(visitor: &mut Visitor) {
    for target in ["/stream", "/stream-download", "/echo", "/cached", "/download"] {
        visitor.get(target);
    }
    for target in ["/cached", "/download"] {
        let etag = visitor.get(target).header("etag").expect("the application sets it").to_owned();
        let again = Request::get(target).header("If-None-Match", &etag);
        visitor.send(&format!("{target} again"), again);
    }
    visitor.send("a part", Request::get("/download").header("Range", "bytes=0-9"));
    visitor.send("HEAD /download", Request::new("HEAD", "/download"));
    visitor.send("HEAD /stream", Request::new("HEAD", "/stream"));
}

/// Requests each error page, including one without a Laravel view.
pub(super) fn errors(visitor: &mut Visitor) {
    for status in [401, 403, 404, 418, 419, 429, 500, 503] {
        visitor.get(&format!("/abort/{status}"));
    }
}

/// Runs each kind of request end, and then a request that would see leftover state.
fn ends(visitor: &mut Visitor) {
    for target in ["/exit", "/dd", "/boom", "/tea", "/warning", "/exit-in-transaction"] {
        visitor.get(target);
        visitor.get("/whoami");
        visitor.get("/state");
    }
    errors(visitor);
    // This state persists by design in the resident model.
    visitor.look("/state/soil");
    visitor.get("/state");
    visitor.get("/");
    let json = |target: &str| Request::get(target).header("Accept", "application/json");
    for target in ["/boom", "/notes", "/no/such/page", "/abort/503"] {
        visitor.send(&format!("{target} as JSON"), json(target));
    }
}

fn api(visitor: &mut Visitor) {
    let body = "{\"name\": \" Ann \", \"list\": [1, 2.5, null, \"\\u00e4\"], \"none\": \"\"}";
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let request = Request::new(method, "/api/echo?a=1&b[]=2")
            .header("Content-Type", "application/json")
            .header("Authorization", "Bearer tea");
        visitor.send(&format!("{method} /api/echo"), request.body(body));
    }
    visitor.send("a form", form("/api/echo", &[("a[b]", "c"), ("d", "")]));
    visitor.send("no JSON", Request::post("/api/echo", "application/json", "{"));
    for numbers in ["[1, 2, 3]", "\"none\"", "[1, \"x\"]"] {
        let body = format!("{{\"numbers\": {numbers}}}");
        let request = Request::post("/api/sum", "application/json", body);
        visitor.send(&format!("sum {numbers}"), request.header("Accept", "application/json"));
    }
    for _ in 0..4 {
        visitor.get("/api/limited");
    }
}
