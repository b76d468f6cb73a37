//! Assignment of requests to pools, in each spelling of the target, and rules that apply to all
//! pools.

use super::{API, BLOG, SAYS, Sites, samovar};
use samovar_testkit::Server;
use samovar_testkit::http::Request;
use std::process::Command;

fn says(server: &Server, target: &str, host: &str) -> String {
    let text = server.client().request(&Request::get(target).header("Host", host)).text();
    text.split(' ').next().unwrap_or_default().to_owned()
}

#[test]
fn request_reaches_its_pool_in_each_spelling() {
    let sites = Sites::new();
    let server = sites.server(&format!("{API}{BLOG}")).start();
    assert_eq!(server.get("/").text(), "shop / 64M");
    assert_eq!(server.get("/api/x?y").text(), "api /api/x?y 77M");
    for (target, expected) in [
        ("/api", "api"),
        ("/%61pi/x", "api"),
        ("/%61%70%69%2Fx", "api"),
        ("//api/x", "api"),
        ("/./api/x", "api"),
        ("/shop/../api/x", "api"),
        ("/shop/%2e%2e/api/x", "api"),
        ("/api/../shop", "shop"),
        ("/api/%2e%2e/shop", "shop"),
        ("/API/x", "shop"),
        ("/apix", "shop"),
        ("/%2561pi/x", "shop"),
        ("/index.php/api/x", "shop"),
    ] {
        assert_eq!(says(&server, target, "localhost"), expected, "{target}");
    }
    for (host, expected) in [
        ("blog.example", "blog"),
        ("BLOG.Example", "blog"),
        ("blog.example:8080", "blog"),
        ("blog.example.", "blog"),
        ("blog.example.:8080", "blog"),
        ("[::1]", "blog"),
        ("[::1]:8080", "blog"),
        ("blog.example.evil", "shop"),
        ("xblog.example", "shop"),
    ] {
        assert_eq!(says(&server, "/x", host), expected, "{host}");
        assert_eq!(says(&server, "/api/x", host), "api", "{host}: the first that fits");
    }
    // The host of the target is used, not that of the header.
    assert_eq!(says(&server, "http://blog.example/x", "localhost"), "blog");
    assert_eq!(says(&server, "http://localhost/x", "blog.example"), "shop");
    // Invalid paths run no script.
    for target in ["/api/%", "/api/%00", "/api/../.."] {
        let response = server.client().request(&Request::get(target));
        assert_eq!(response.status, 400, "{target}");
    }
    server.stop();
}

#[test]
fn http2_stream_is_routed_by_its_authority() {
    let sites = Sites::new();
    let server = sites.server(BLOG).start();
    let port = server.address().port();
    let ask = |url: &str| {
        let resolve = format!("blog.example:{port}:127.0.0.1");
        let mut curl = Command::new("curl");
        curl.args(["-s", "--http2-prior-knowledge", "--noproxy", "*", "--resolve", &resolve, url]);
        let output = curl.output().expect("curl");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(ask(&format!("http://blog.example:{port}/x")).starts_with("blog "));
    assert!(ask(&format!("http://127.0.0.1:{port}/x")).starts_with("shop "));
    server.stop();
}

#[test]
fn denied_location_is_denied_in_every_pool() {
    let sites = Sites::new()
        .write("shop/page.txt", "the shop's")
        .write("api/page.txt", "the api's")
        .write("api/api/page.txt", "the api's own")
        .write("api/api/secret/run.php", "<?php echo 'ran';")
        .write("api/api/secret/a.txt", "secret");
    let deny = "[[location]]\npath = '/api/secret/*'\ndeny = true\n";
    let server = sites.server(&format!("{deny}{API}")).start();
    assert_eq!(server.get("/page.txt").text(), "the shop's");
    assert_eq!(server.get("/api/page.txt").text(), "the api's own");
    for target in [
        "/api/secret/a.txt",
        "/%61pi/secret/a.txt",
        "//api/secret/run.php",
        "/api/secret/run.php/x",
        "/shop/../api/secret/run.php",
        "/api/SECRET/a.txt",
    ] {
        let response = server.client().request(&Request::get(target));
        assert_eq!(response.status, 403, "{target}: {}", response.text());
    }
    server.stop();
}

#[test]
fn pool_of_script_in_shared_root_cannot_be_bypassed() {
    let sites = Sites::new();
    let says = SAYS.replace("NAME", "'export'");
    sites.rewrite("shop/export.php", &format!("<?php {says}"));
    let pools = "
        [[pool]]
        name = 'export'
        match = '/export/*'
        root = 'FOLDER/shop/export.php'
        workers = 1
        [pool.php]
        memory_limit = '99M'
    ";
    let server = sites.server(pools).start();
    for target in ["/export/1", "/export.php", "/export.php/1", "/%65xport.php", "//export.php/1"] {
        let response = server.get(target).text();
        assert!(
            response.starts_with("export ") && response.ends_with(" 99M"),
            "{target}: {response}"
        );
    }
    // The shop's front controller with the path of the export after it: the request belongs to the
    // export's pool.
    let response = server.get("/index.php/export/1").text();
    assert!(response.starts_with("shop ") && response.ends_with(" 99M"), "{response}");
    assert!(server.get("/index.php/x").text().ends_with(" 64M"));
    server.stop();
}

#[test]
fn routes_and_check_commands_name_the_pool() {
    let sites = Sites::new();
    let text = format!("root = 'shop'\n{API}{BLOG}").replace("FOLDER", ".");
    sites.rewrite("samovar.toml", &text);
    let folder = sites.folder.path();
    for (url, expected) in [
        ("/%61pi/x", "pool     api (samovar.toml:3)"),
        ("https://BLOG.example:443/x", "pool     blog (samovar.toml:12)"),
        ("/x", "pool     default\n"),
    ] {
        let (code, said) = samovar(&["routes", url], folder);
        assert!(code == Some(0) && said.contains(expected), "{url}: {said}");
    }
    let (_, json) = samovar(&["routes", "--json", "/api/x"], folder);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["pool"], "api");
    assert!(json["response"].as_str().is_some_and(|response| response.contains("/api/index.php")));
    let (_, said) = samovar(&["check"], folder);
    assert!(said.contains("pool: `api` serves the requests of `/api/*`"), "{said}");
    assert!(said.contains("pool: `blog` serves the requests of `blog.example`, `[::1]`"), "{said}");
    sites.rewrite("samovar.toml", "root = 'shop'\n");
    let (_, said) = samovar(&["routes", "/api/x"], folder);
    assert!(!said.contains("pool     "), "{said}");
}
