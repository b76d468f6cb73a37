//! Many visitors at once: no visitor sees data of another session.

use crate::applications::forms::post_message;
use samovar_testkit::copy::copy_of;
use samovar_testkit::http::Request;
use samovar_testkit::order::Order;
use samovar_testkit::visitor::{Visitor, between};
use samovar_testkit::{Server, workspace};
use std::net::SocketAddr;

const VISITORS: usize = 8;
const REQUESTS_EACH: usize = 25;
/// A fixed seed: each run sends the requests in the same order.
const SEED: u64 = 1;

#[test]
fn symfony_sessions_are_separate() {
    stay_apart("symfony", "public", symfony);
}

#[test]
fn resident_symfony_sessions_are_separate() {
    stay_apart("symfony", "public/resident.php", symfony);
}

#[test]
fn slim_sessions_are_separate() {
    stay_apart("slim", "public", slim);
}

#[test]
fn resident_slim_sessions_are_separate() {
    stay_apart("slim", "public/resident.php", slim);
}

/// Runs eight visitors at once. Each has its own name and its own order of requests.
fn stay_apart(example: &str, target: &str, visit: fn(SocketAddr, &str, &mut Order)) {
    let copy = copy_of(&workspace().join("examples").join(example));
    let server = Server::at(copy.path().join(target)).relinked().workers(3).start();
    std::thread::scope(|scope| {
        for number in 1..=VISITORS {
            let address = server.address();
            scope.spawn(move || {
                visit(address, &format!("visitor-{number}-"), &mut Order::new(SEED, number));
            });
        }
    });
    server.stop();
}

/// Session state that one visitor expects from the Symfony application.
#[derive(Default)]
struct Expected {
    visits: u32,
    asked: u32,
    name: Option<String>,
    flash: Option<String>,
}

fn symfony(address: SocketAddr, prefix: &str, order: &mut Order) {
    let mut visitor = Visitor::new(address);
    let mut expected = Expected::default();
    for turn in 0..REQUESTS_EACH {
        let name = format!("{prefix}{turn}");
        match order.next(4) {
            0 => {
                let step = format!("{name} posts");
                post_message(&mut visitor, &step, &name, "Tea, please.", None);
                expected.flash = Some(format!("Thank you, {name}: 12 characters."));
                expected.name = Some(name);
            }
            1 => rename(&mut visitor, &mut expected, name),
            2 => {
                let response = visitor.get("/api/square/3");
                assert_eq!(response.text(), "{\"number\":3,\"square\":9}", "{name}");
            }
            _ => home(&mut visitor, &mut expected, &name),
        }
    }
    home(&mut visitor, &mut expected, prefix);
}

fn rename(visitor: &mut Visitor, expected: &mut Expected, name: String) {
    let put = Request::new("PUT", "/api/session").header("Content-Type", "application/json");
    let response = visitor.send(&name, put.body(format!("{{\"name\": \"{name}\"}}")));
    expected.asked += 1;
    let asked = expected.asked;
    assert_eq!(response.text(), format!("{{\"name\":\"{name}\",\"asked\":{asked}}}"));
    expected.name = Some(name);
}

fn home(visitor: &mut Visitor, expected: &mut Expected, who: &str) {
    let page = visitor.get("/").text();
    expected.visits += 1;
    let times = match expected.visits {
        1 => "once".to_owned(),
        visits => format!("{visits} times"),
    };
    assert!(page.contains(&format!("You have been here {times}.")), "{who}: {times}: {page}");
    let greeting = expected.name.as_ref().map(|name| format!(", {name}")).unwrap_or_default();
    assert_eq!(between(&page, "<h1>Hello", "!</h1>"), greeting, "{who}");
    let flashes: Vec<&str> = page.split("<p class=\"flash\">").skip(1).collect();
    if let Some(flash) = expected.flash.take() {
        assert!(flashes.last().is_some_and(|f| f.starts_with(&flash)), "{who}: {page}");
    } else {
        assert!(flashes.is_empty(), "{who}: {page}");
    }
    assert!(
        flashes.iter().all(|flash| flash.contains(who.trim_end_matches(char::is_numeric))),
        "{page}"
    );
}

fn slim(address: SocketAddr, prefix: &str, order: &mut Order) {
    let mut visitor = Visitor::new(address);
    let mut list: Vec<(u64, String)> = Vec::new();
    let mut id = 0;
    for turn in 0..REQUESTS_EACH {
        let title = format!("{prefix}{turn}");
        match order.next(4) {
            0 => {
                let body = format!("{{\"title\": \"{title}\"}}");
                let post = Request::post("/todos", "application/json", body);
                assert_eq!(visitor.send(&title, post).status, 201, "{title}");
                id += 1;
                list.push((id, title));
            }
            1 if !list.is_empty() => {
                let at = order.next(list.len());
                let (id, _) = list.remove(at);
                let delete = Request::new("DELETE", &format!("/todos/{id}"));
                assert_eq!(visitor.send(&title, delete).status, 204, "{title}");
            }
            2 => {
                let target = format!("/hello/{title}");
                assert_eq!(visitor.get(&target).text(), format!("Hello, {title}!\n"));
            }
            _ => assert_eq!(visitor.get("/todos").text(), json(&list), "{title}"),
        }
    }
    assert_eq!(visitor.get("/todos").text(), json(&list), "{prefix}");
}

fn json(list: &[(u64, String)]) -> String {
    let one = |(id, title): &(u64, String)| format!("{{\"id\":{id},\"title\":\"{title}\"}}");
    format!("[{}]", list.iter().map(one).collect::<Vec<_>>().join(","))
}
