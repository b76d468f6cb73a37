//! Variables that a location passes to scripts, its limits, its own responses, and its log
//! settings.

use super::Site;
use samovar_testkit::Oracle;
use samovar_testkit::http::{Request, Response};

const TOLD: &str = r#"
access_log = "FOLDER/access.log"
[limits]
body_bytes_max = "1K"

[[location]]
path = "/shop/*"
variables = { MAGE_RUN_CODE = "shop", MAGE_RUN_TYPE = "store" }

[[location]]
path = "*.php"
variables = { MAGE_RUN_CODE = "all" }

[[location]]
path = "/uploads/*"
body_bytes_max = "64K"

[[location]]
path = ["/quiet", "/a.css"]
access_log = false

[[location]]
path = "/gone/*"
status = 410
headers = { X-Gone = "yes" }

[[location]]
path = "/caught/*"
intercept = true

[[location]]
error_pages = { 404 = "FOLDER/errors/404.html", 410 = "FOLDER/errors/404.html" }
"#;

const TOLD_OF_NGINX: &str = r"
location /shop/ {
    include /etc/nginx/fastcgi_params;
    fastcgi_param SCRIPT_FILENAME $document_root/index.php;
    fastcgi_param MAGE_RUN_CODE shop;
    fastcgi_param MAGE_RUN_TYPE store;
    fastcgi_pass FPM;
}
location /gone/ { return 410; }
location /caught/ {
    include /etc/nginx/fastcgi_params;
    fastcgi_param SCRIPT_FILENAME $document_root/index.php;
    fastcgi_param MAGE_RUN_CODE all;
    fastcgi_intercept_errors on;
    error_page 404 /errors-404.html;
    fastcgi_pass FPM;
}
";

const TELLER: &str = r"<?php
http_response_code((int) ($_GET['status'] ?? 200));
header('X-App: ran');
if (isset($_GET['length'])) {
    header('Content-Length: 500000');
}
echo json_encode([
    $_SERVER['MAGE_RUN_CODE'] ?? null,
    getenv('MAGE_RUN_TYPE'),
    $_SERVER['HTTP_MAGE_RUN_CODE'] ?? null,
    strlen(file_get_contents('php://input')),
]), str_repeat(' ', (int) ($_GET['times'] ?? 0));
";

/// `fastcgi_param`, `return` and `fastcgi_intercept_errors`, compared with nginx.
#[test]
fn location_variables_and_responses_match_nginx() {
    let site = Site::new();
    site.write("site/index.php", TELLER);
    site.write("site/errors-404.html", "our own 404");
    let server = site.server(TOLD).start();
    let oracle = Oracle::located(&site.path("site"), TOLD_OF_NGINX);
    for target in [
        "/shop/a",
        "/shop/",
        "/gone/",
        "/gone/a?b",
        "/caught/a",
        "/caught/a?status=404",
        "/caught/a?status=404&times=200000",
        "/caught/a?status=500",
        "/caught/a?status=301",
    ] {
        let request = Request::get(target).header("Mage-Run-Code", "forged");
        let ours = server.client().request(&request);
        let theirs = oracle.client().request(&request);
        let text = |of: &Response| if of.status == 410 { String::new() } else { of.text() };
        assert_eq!((ours.status, text(&ours)), (theirs.status, text(&theirs)), "{target}");
    }
}

#[test]
fn location_sets_variables_and_body_limit_of_scripts() {
    let site = Site::new();
    site.write("site/index.php", TELLER);
    let server = site.server(TOLD).start();
    let forging = |target: &str| {
        let request = Request::get(target).header("Mage-Run-Code", "forged");
        server.client().request(&request).text()
    };
    assert_eq!(forging("/shop/a"), r#"["shop","store","forged",0]"#);
    assert_eq!(forging("/"), r#"["all",false,"forged",0]"#);
    let sent = |target: &str, bytes: usize| {
        let body = "x".repeat(bytes);
        let known = server.client().request(&Request::form(target, &body)).status;
        let chunks = format!(
            "POST {target} HTTP/1.1\r\nHost: t\r\n\
             Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
             {bytes:x}\r\n{body}\r\n0\r\n\r\n"
        );
        let mut client = server.client();
        client.send(chunks.as_bytes());
        (known, client.read(false).status)
    };
    assert_eq!(sent("/any", 1000), (200, 200));
    assert_eq!(sent("/any", 1025), (413, 413));
    assert_eq!(sent("/uploads/new", 60_000), (200, 200));
    assert_eq!(sent("/uploads/new", 65_537), (413, 413));
}

#[test]
fn location_sets_error_pages_headers_and_logging() {
    let site = Site::new();
    site.write("site/index.php", TELLER);
    let server = site.server(TOLD).start();
    let gone = server.get("/gone/index.php");
    assert_eq!((gone.status, gone.text().as_str()), (410, "our own 404"));
    assert_eq!((gone.header("x-gone"), gone.header("x-app")), (Some("yes"), None));
    // Only the content of the script's response is replaced.
    let caught = server.get("/caught/a?status=404&length=1&times=500000");
    assert_eq!((caught.status, caught.text().as_str()), (404, "our own 404"));
    assert_eq!(
        (caught.header("x-app"), caught.header("content-length")),
        (Some("ran"), Some("11"))
    );
    let head = server.client().request(&Request::new("HEAD", "/caught/a?status=404"));
    assert_eq!((head.status, head.header("content-length")), (404, Some("11")));
    assert!(server.get("/other?status=404").text().starts_with('['), "elsewhere it stays");
    for target in ["/quiet", "/a.css", "/quiet?status=500", "/loud"] {
        server.get(target);
    }
    let log = samovar_testkit::eventually("the last line", || {
        let log = std::fs::read_to_string(site.path("access.log")).ok()?;
        log.contains("/loud").then_some(log)
    });
    assert!(!log.contains("/quiet") && !log.contains("/a.css") && log.contains("/gone"), "{log}");
}

/// The same script as a whole, and booted in three ways, each with its model in `status`.
const MODELS: [(&str, &str); 4] = [
    ("script", "TELL"),
    ("checkpoint", "Samovar\\checkpoint();\nTELL"),
    (
        "resident",
        "Samovar\\serve(function () {\n\
         ob_start();\nTELL\nreturn new Samovar\\Response(ob_get_clean());\n});",
    ),
    ("resident", "while (frankenphp_handle_request(function () {\nTELL\n})) {\n}"),
];

const TELL: &str = "echo json_encode([$_SERVER['MAGE_RUN_CODE'] ?? null, getenv('MAGE_RUN_CODE'), \
                    $_SERVER['MAGE_RUN_TYPE'] ?? null, getenv('MAGE_RUN_TYPE'), \
                    $_SERVER['HTTP_MAGE_RUN_CODE'] ?? null]);";

/// A booted application receives the variables with each request, and none of the previous request.
#[test]
fn location_variables_are_set_per_request_in_each_model() {
    for (model, php) in MODELS {
        let site = Site::new();
        site.write("site/index.php", &format!("<?php\n{}\n", php.replace("TELL", TELL)));
        let server = site.server(TOLD).workers(1).start();
        let asked = |target: &str| {
            let request = Request::get(target).header("Mage-Run-Code", "forged");
            server.client().request(&request).text()
        };
        for _ in 0..3 {
            assert_eq!(asked("/shop/a"), r#"["shop","shop","store","store","forged"]"#, "{php}");
            assert_eq!(asked("/"), r#"["all","all",null,false,"forged"]"#, "{php}");
        }
        let of_workers = server.status();
        assert_eq!(of_workers["workers"][0]["model"], model, "{php}: {of_workers}");
    }
}
