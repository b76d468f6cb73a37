//! `samovar reload --canary`: a new generation serves a share of the visitors, is compared with the
//! serving one, and takes over or ends without a lost request.

use samovar_testkit::SetOnDrop;
use samovar_testkit::http::{Client, Request, Response};
use samovar_testkit::{Server, binary, eventually};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tempfile::TempDir;

/// Beginning and end of a release's front controller, by model.
const MODELS: [(&str, &str); 3] =
    [("(", ")();"), ("Samovar\\serve(", ", 0);"), ("Samovar\\serve(", ", 1);")];

/// Releases in folders; the first one serves.
struct Site(TempDir);

impl Site {
    fn new() -> Site {
        Site(TempDir::with_prefix("samovar-canary-").expect("a folder"))
    }

    fn root(&self, release: &str) -> PathBuf {
        self.0.path().join(release).join("public")
    }

    /// Creates a release that runs this code, then prints its name.
    fn release(&self, name: &str, model: (&str, &str), code: &str) -> &Site {
        let (begin, end) = model;
        let root = self.root(name);
        std::fs::create_dir_all(&root).expect("a folder");
        let php = format!("<?php {begin}static function () {{ {code}; echo '{name}'; }}{end}");
        std::fs::write(root.join("index.php"), php).expect("a script");
        std::fs::write(root.join("page.txt"), name).expect("a file");
        self
    }

    fn serve(&self) -> Server {
        Server::at(self.root("one")).workers(2).args(["--admin", "127.0.0.1:0"]).start()
    }

    /// Starts a canary with the second release.
    fn canary(&self, server: &Server, share: &str, by: &str) -> Result<String, String> {
        let root = self.root("two");
        let root = root.to_str().expect("a path in UTF-8");
        server.reload_with(["--canary", share, "--by", by, "--step", "0", "--root", root])
    }
}

/// Runs `samovar canary`. Returns its exit code and its output.
fn command(server: &Server, args: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(binary())
        .args(["canary", "--control"])
        .arg(server.control())
        .args(args)
        .output()
        .expect("the binary runs");
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

fn status(server: &Server) -> Value {
    let (code, said) = command(server, &["status", "--json"]);
    assert_eq!(code, Some(0), "{said}");
    serde_json::from_str::<Value>(&said).expect("JSON")["canary"].take()
}

/// Sends requests until the canary has ended. Returns its last state.
fn until_ended(server: &Server, target: &str) -> Value {
    let mut client = server.client();
    eventually("the end of the canary", || {
        for _ in 0..20 {
            client.get(target);
        }
        let canary = status(server);
        matches!(canary["state"].as_str(), Some("aborted" | "promoted")).then_some(canary)
    })
}

/// Returns the page Releases of the dashboard.
fn releases_page(server: &Server) -> String {
    let status = server.status();
    let address = status["admin"][0].as_str().and_then(|text| text.parse().ok());
    let address: std::net::SocketAddr = address.expect("an address");
    Client::connect(address).request(&Request::get("/releases")).text()
}

fn with_cookie(client: &mut Client, target: &str, cookie: &str) -> Response {
    client.request(&Request::get(target).header("Cookie", cookie))
}

#[test]
fn canary_serves_its_share_and_no_request_is_lost() {
    for model in MODELS {
        let site = Site::new();
        site.release("one", model, "").release("two", model, "");
        let server = site.serve();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let _over = SetOnDrop(&is_over);
            let visitors: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        let mut client = server.client();
                        let mut count = 0;
                        while !is_over.load(Ordering::SeqCst) {
                            let response = client.get("/");
                            assert_eq!(response.status, 200);
                            assert!(matches!(&*response.text(), "one" | "two"));
                            count += 1;
                        }
                        count
                    })
                })
                .collect();
            let said = site.canary(&server, "25%", "random").expect("a canary");
            assert!(said.contains("generation 2 serves 25% of the visitors by random"), "{said}");
            let mut client = server.client();
            let count = 800;
            let of_canary = (0..count).filter(|_| client.get("/").text() == "two").count();
            // Five standard deviations.
            assert!((139..=261).contains(&of_canary), "{of_canary} of {count}");
            let canary = status(&server);
            assert_eq!(canary["state"], "running", "{canary:#}");
            let why = server.reload().expect_err("a canary runs");
            assert!(why.contains("samovar canary promote"), "{why}");
            let upgrade = Command::new(binary())
                .args(["upgrade", "--control"])
                .arg(server.control())
                .output()
                .expect("the binary runs");
            let why = String::from_utf8_lossy(&upgrade.stderr);
            assert!(!upgrade.status.success() && why.contains("samovar canary abort"), "{why}");
            let (code, said) = command(&server, &["abort"]);
            assert_eq!(code, Some(0), "{said}");
            assert!((0..50).all(|_| client.get("/").text() == "one"));
            let said = site.canary(&server, "5%", "random").expect("a canary");
            assert!(said.contains("generation 3 serves 5%"), "{said}");
            let (code, said) = command(&server, &["promote", "--to", "50%"]);
            assert!(code == Some(0) && said.contains("serves 50%"), "{said}");
            let (code, said) = command(&server, &["promote"]);
            assert_eq!((code, &*said), (Some(0), "generation 3 serves\n"));
            eventually("the new release alone", || {
                (0..50).all(|_| client.get("/").text() == "two").then_some(())
            });
            is_over.store(true, Ordering::SeqCst);
            for visitor in visitors {
                assert!(visitor.join().expect("no request is lost") > 0);
            }
        });
        assert_eq!(server.status()["generation"], 3);
        server.stop();
    }
}

/// A front that drains once kept them in the canary's lane until they were rejected.
#[test]
fn requests_queued_for_canary_are_served_when_the_server_stops() {
    let site = Site::new();
    let go = site.0.path().join("go");
    let code = format!(
        "while (isset($_GET['wait']) && !file_exists('{}')) {{ usleep(1000); clearstatcache(); }}",
        go.display()
    );
    site.release("one", MODELS[2], "").release("two", MODELS[2], &code);
    let mut server = site.serve();
    site.canary(&server, "99%", "random").expect("a canary");
    let mut clients: Vec<Client> = (0..12)
        .map(|_| {
            let mut client = server.client();
            client.send(&Request::get("/?wait").bytes());
            client
        })
        .collect();
    eventually("requests in the queue", || {
        let status = server.status();
        (status["in_flight"] == 12 && status["queue_depth"].as_u64()? > 0).then_some(())
    });
    server.terminate();
    server.wait_for_log("canary aborted");
    std::fs::write(&go, "").expect("our own folder");
    for client in &mut clients {
        assert_eq!(client.read(false).status, 200);
    }
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn visitor_stays_with_one_release() {
    let site = Site::new();
    site.release("one", MODELS[2], "").release("two", MODELS[2], "");
    let server = site.serve();
    let mut client = server.client();
    assert!(client.get("/").all("set-cookie").is_empty(), "there is no canary");
    site.canary(&server, "50%", "cookie").expect("a canary");
    let mut seen = [0; 2];
    for _ in 0..30 {
        let first = client.get("/");
        let cookies = first.all("set-cookie");
        assert!(cookies[0].contains("; HttpOnly; SameSite=Lax"), "{cookies:?}");
        let cookie = cookies[0].split(';').next().expect("a pair").to_owned();
        let name = first.text();
        seen[usize::from(name == "two")] += 1;
        for target in ["/", "/page.txt", "/deep/path"] {
            let next = with_cookie(&mut client, target, &format!("a=b; {cookie}"));
            assert_eq!(next.text(), name, "{target}");
            assert!(next.all("set-cookie").is_empty());
        }
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
    for hostile in ["", "9", "zzzzzzzzzzzzzzzz", "00000000000000001", "-000000000000001", "ÿ"] {
        let response = with_cookie(&mut client, "/", &format!("samovar_canary={hostile}"));
        assert_eq!(response.status, 200);
        assert_eq!(response.all("set-cookie").len(), 1, "{hostile}");
    }
    command(&server, &["abort"]);
    assert!(client.get("/").all("set-cookie").is_empty(), "the canary has ended");
    assert_eq!(server.status()["recent"]["reloads_failed"], 0, "an operator wanted this end");
    site.canary(&server, "50%", "client").expect("a canary");
    let name = client.get("/").text();
    assert!((0..40).all(|_| client.get("/").text() == name), "one address, one release");
    server.stop();
}

#[test]
fn regressions_abort_the_canary_and_the_report_names_the_route() {
    let burn = |us: u32| {
        format!(
            "$end = getrusage()['ru_utime.tv_usec'] / 1 + getrusage()['ru_utime.tv_sec'] * 1e6 + \
             {us}; while (getrusage()['ru_utime.tv_usec'] + getrusage()['ru_utime.tv_sec'] * 1e6 \
             < $end) {{ }}"
        )
    };
    let (quick, slow) = (burn(1_000), burn(4_000));
    // The probe of the reload requests `/`.
    let at_times = |code: &str| {
        format!("if ($_SERVER['REQUEST_URI'] === '/bad' && random_int(1, 4) === 1) {{ {code}; }}")
    };
    let fatal = at_times("throw new RuntimeException('no stock of 7')");
    let (error, dies) =
        (at_times("http_response_code(503)"), at_times("posix_kill(getmypid(), 9)"));
    let leak = "static $all = []; $all[] = str_repeat('x', 200_000)";
    for (name, model, [old, new], expected) in [
        ("slow", MODELS[2], [&*quick, &*slow], ["CPU time", "latency"]),
        ("fatal", MODELS[2], ["", &*fatal], ["no stock of 7", "no stock of 7"]),
        ("error", MODELS[0], ["", &*error], ["server errors", "server errors"]),
        ("leak", MODELS[1], ["", leak], ["memory growth", "memory growth"]),
        ("dies", MODELS[2], ["", &*dies], ["fatal errors", "workers died"]),
    ] {
        let site = Site::new();
        site.release("one", model, old).release("two", model, new);
        let server = site.serve();
        site.canary(&server, "50%", "random").expect("a canary");
        let end = until_ended(&server, "/bad");
        let reason = end["reason"].as_str().expect("a text");
        assert_eq!(end["state"], "aborted", "{name}: {reason}");
        assert!(expected.iter().any(|text| reason.contains(text)), "{name}: {reason}");
        let names_route = reason.contains("`index.php /bad`") || reason.contains("workers died");
        assert!(names_route, "{name}: {reason}");
        assert!((0..20).all(|_| server.get("/").text() == "one"), "{name}");
        let page = releases_page(&server);
        assert!(page.contains("Generation 2: aborted"), "{name}: {page}");
        assert_eq!(page.contains("no stock of 7"), name == "fatal", "{name}: {page}");
        assert_eq!(server.status()["generation"], 1);
        server.stop();
    }
}

#[test]
fn steps_lead_to_promotion_of_an_equal_release() {
    let site = Site::new();
    site.release("one", MODELS[2], "").release("two", MODELS[2], "");
    let server = site.serve();
    site.canary(&server, "20%,60%,100%", "random").expect("a canary");
    let end = until_ended(&server, "/");
    assert_eq!((end["state"].as_str(), &end["share_ppm"]), (Some("promoted"), &600_000.into()));
    eventually("the release", || (server.get("/").text() == "two").then_some(()));
    server.stop();
}

#[test]
fn canary_that_cannot_start_changes_nothing() {
    let site = Site::new();
    site.release("one", MODELS[2], "").release("two", ("exit(1); (", ")();"), "");
    let server = site.serve();
    for (share, why) in [("100%", "first must be below 100%"), ("9%,5%", "ascend")] {
        let said = site.canary(&server, share, "cookie").expect_err("no canary");
        assert!(said.contains(why), "{said}");
    }
    let said = site.canary(&server, "5%", "cookie").expect_err("no canary");
    assert!(said.contains("serves all requests"), "{said}");
    let (code, said) = command(&server, &["promote"]);
    assert!(code == Some(1) && said.contains("no canary is running"), "{said}");
    site.release("two", MODELS[2], "");
    site.canary(&server, "5%", "cookie").expect("a canary");
    assert_eq!(server.get("/").status, 200);
    assert!(server.status()["canary"]["share_ppm"] == 50_000);
    server.stop();
}

#[test]
fn canary_without_request_accounting_is_refused() {
    let site = Site::new();
    site.release("one", MODELS[2], "").release("two", MODELS[2], "");
    let server = Server::at(site.root("one")).workers(1).start();
    let said = site.canary(&server, "5%", "cookie").expect_err("no canary");
    assert!(said.contains("hint: set `admin`"), "{said}");
    server.stop();
}
