//! The visit of one client to the shop: every page, in every language, with valid and invalid
//! forms.

use samovar_testkit::http::{Request, Response};
use samovar_testkit::visitor::{PNG, Upload, Visitor, between, field_value, form, multipart};

pub(crate) const LOCALES: [&str; 3] = ["en", "de", "fr"];

/// Runs the whole walk.
pub(crate) fn walk(visitor: &mut Visitor) {
    pages(visitor);
    cart(visitor);
    users(visitor);
    notes(visitor);
    ways(visitor);
    visitor.get("/logout");
    visitor.get("/");
    visitor.get("/notes");
    ways(visitor);
}

fn pages(visitor: &mut Visitor) {
    for target in ["/", "/", "/?a[]=1&b=%C3%A4", "/products", "/products/2", "/cart", "/notes"] {
        visitor.get(target);
    }
    for target in ["/products/99", "/no/such/page", "/language/xx", "/admin", "/notes/1/remove"] {
        visitor.get(target);
    }
    for locale in LOCALES {
        visitor.get(&format!("/language/{locale}"));
        for target in ["/", "/products/1", "/cart", "/login", "/register"] {
            visitor.get(target);
        }
    }
    visitor.get("/language/de");
    visitor.send("HEAD /", Request::new("HEAD", "/"));
    visitor.send("DELETE /cart", Request::new("DELETE", "/cart"));
    visitor.send("OPTIONS /cart", Request::new("OPTIONS", "/cart"));
    let style = visitor.get("/style.css");
    assert_eq!(style.status, 200);
    let (etag, changed) = {
        let products = visitor.get("/products");
        let header = |name| products.header(name).expect("the page has it").to_owned();
        (header("etag"), header("last-modified"))
    };
    for (name, value) in [("If-None-Match", &etag), ("If-Modified-Since", &changed)] {
        visitor.send(name, Request::get("/products").header(name, value));
    }
    visitor.send("another", Request::get("/products").header("If-None-Match", "\"another\""));
}

fn cart(visitor: &mut Visitor) {
    add(visitor, "two", 1, "2");
    visitor.send("its flash", Request::get("/cart"));
    visitor.send("no flash any more", Request::get("/cart"));
    for (step, count) in [("none", "0"), ("too many", "100"), ("no number", "tea"), ("empty", "")] {
        add(visitor, step, 2, count);
    }
    add(visitor, "three", 4, "3");
    visitor.get("/cart");
    visitor.send("a post without a form", form("/products/1", &[("other", "1")]));
    visitor.send(
        "a forged token",
        form("/products/1", &[("cart[count]", "1"), ("cart[_token]", "x")]),
    );
    visitor.send("all back", form("/cart/empty", &[]));
    visitor.get("/cart");
}

fn users(visitor: &mut Visitor) {
    for (step, name, password, again) in [
        ("too short", "ab", "x", "x"),
        ("taken", "bob", "tea", "tea"),
        ("not the same", "Zoë", "tea", "coffee"),
        ("a new user", "Zoë & <Co>", "green tea", "green tea"),
        ("the same again", "Zoë & <Co>", "green tea", "green tea"),
    ] {
        register(visitor, step, name, password, again);
    }
    login_with(visitor, "wrong password", "ann", "coffee");
    visitor.send("its page", Request::get("/login"));
    login_with(visitor, "nobody", "nobody", "tea");
    visitor.send("its page, too", Request::get("/login"));
    let forged = [("_username", "ann"), ("_password", "tea"), ("_csrf_token", "forged")];
    visitor.send("a forged login", form("/login", &forged));
    visitor.send("a forged login's page", Request::get("/login"));
    login_with(visitor, "Zoë", "Zoë & <Co>", "green tea");
    for target in ["/", "/admin", "/notes", "/logout", "/"] {
        visitor.get(target);
    }
    login(visitor, "ann");
    for target in ["/", "/admin", "/ways/json"] {
        visitor.get(target);
    }
}

fn notes(visitor: &mut Visitor) {
    note(visitor, "a note", "Zoë's — “tea” & <b>", None);
    visitor.send("its flash", Request::get("/notes"));
    visitor.get("/notes");
    let png = ("note[picture]", "tea.png", "image/png", PNG);
    note(visitor, "with a picture", "With a picture", Some(png));
    visitor.get("/notes");
    note(visitor, "too short", "x", None);
    note(visitor, "too long", &"x".repeat(201), None);
    note(
        visitor,
        "no picture",
        "Text",
        Some(("note[picture]", "a.png", "image/png", b"plain text")),
    );
    let (large, huge) = (vec![b'x'; 100 * 1024], vec![b'x'; 160 * 1024]);
    note(visitor, "too large", "Large", Some(("note[picture]", "a.png", "image/png", &large)));
    note(
        visitor,
        "too large for PHP",
        "Huge",
        Some(("note[picture]", "a.png", "image/png", &huge)),
    );
    visitor
        .send("no such product", form("/notes", &[("note[product]", "99"), ("note[text]", "Tea")]));
    visitor.get("/notes.json");
    visitor.send("a forged removal", form("/notes/1/remove", &[("token", "forged")]));
    remove_first(visitor, "a removal");
    visitor.get("/notes");
    visitor.send("removed already", form("/notes/1/remove", &[("token", "forged")]));
}

/// Requests responses that are not HTML pages.
fn ways(visitor: &mut Visitor) {
    for target in [
        "/ways/exit?name=crowd",
        "/ways/json",
        "/ways/dd?a[b]=c",
        "/ways/json",
        "/ways/boom",
        "/",
        "/ways/closed",
        "/ways/closed",
        "/ways/stream/12",
        "/ways/stream/100",
        "/ways/early",
    ] {
        visitor.get(target);
    }
    let file = visitor.get("/ways/file");
    let etag = file.header("etag").expect("the application sets it").to_owned();
    visitor.send("file again", Request::get("/ways/file").header("If-None-Match", &etag));
    visitor.send("a part", Request::get("/ways/file").header("Range", "bytes=10-19"));
    visitor.send("HEAD file", Request::new("HEAD", "/ways/file"));
}

/// Adds a product to the cart.
pub(crate) fn add(visitor: &mut Visitor, step: &str, product: usize, count: &str) -> Response {
    let target = format!("/products/{product}");
    let page = visitor.send(&format!("{step}: the form"), Request::get(&target)).text();
    let token = field_value(&page, "cart[_token]").to_owned();
    let fields = [("cart[count]", count), ("cart[add]", ""), ("cart[_token]", token.as_str())];
    visitor.send(step, form(&target, &fields))
}

/// Saves a note about the first product.
pub(crate) fn note(visitor: &mut Visitor, step: &str, text: &str, file: Option<Upload>) {
    let page = visitor.send(&format!("{step}: the form"), Request::get("/notes")).text();
    let token = field_value(&page, "note[_token]").to_owned();
    let fields = [
        ("note[product]", "1"),
        ("note[text]", text),
        ("note[send]", ""),
        ("note[_token]", token.as_str()),
    ];
    visitor.send(step, multipart("/notes", &fields, &file.into_iter().collect::<Vec<_>>()));
}

/// Removes the first note, if there is one.
pub(crate) fn remove_first(visitor: &mut Visitor, step: &str) {
    let page = visitor.send(&format!("{step}: the notes"), Request::get("/notes")).text();
    if !page.contains("class=\"note\"") {
        return;
    }
    let first = between(&page, "<form class=\"note\"", "</form>");
    let target = between(first, "action=\"", "\"").to_owned();
    let token = field_value(first, "token").to_owned();
    visitor.send(step, form(&target, &[("token", &token)]));
}

/// Logs a user of the fixtures in.
pub(crate) fn login(visitor: &mut Visitor, name: &str) {
    let response = login_with(visitor, &format!("{name} logs in"), name, "tea");
    assert!(
        response.header("location").is_some_and(|to| !to.ends_with("/login")),
        "{name}: {response:?}"
    );
}

fn login_with(visitor: &mut Visitor, step: &str, name: &str, password: &str) -> Response {
    let page = visitor.send(&format!("{step}: the form"), Request::get("/login")).text();
    let token = field_value(&page, "_csrf_token").to_owned();
    let fields = [("_username", name), ("_password", password), ("_csrf_token", &token)];
    visitor.send(step, form("/login", &fields))
}

fn register(visitor: &mut Visitor, step: &str, name: &str, password: &str, again: &str) {
    let page = visitor.send(&format!("{step}: the form"), Request::get("/register")).text();
    let token = field_value(&page, "registration[_token]").to_owned();
    let fields = [
        ("registration[name]", name),
        ("registration[password][first]", password),
        ("registration[password][second]", again),
        ("registration[register]", ""),
        ("registration[_token]", &token),
    ];
    visitor.send(step, form("/register", &fields));
}
