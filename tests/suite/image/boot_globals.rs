//! Entries that the boot writes into superglobals: variables of a .env file in `$_ENV` and
//! `$_SERVER`, and defaults. Each request finds them, as if the whole script ran.

use crate::image::script;
use samovar_testkit::http::Request;
use samovar_testkit::{Server, Start};
use serde_json::{Value, json};

/// The statement that begins the code of a request, and the one that ends it.
const WAYS: [(&str, &str, &str); 5] = [
    ("script", "(function () {", "})();"),
    ("checkpoint", "Samovar\\checkpoint(); (function () {", "})();"),
    ("resident", "Samovar\\serve(function () {", "});"),
    ("rollback", "Samovar\\serve(function () {", "}, 1);"),
    ("loop", "while (frankenphp_handle_request(function () {", "}));"),
];

/// One server per way, with the same boot and the same code of the request.
fn each_way(boot: &str, request: &str, set: fn(Start) -> Start, check: impl Fn(&Server, &str)) {
    for (way, begin, end) in WAYS {
        let start = script(&format!("{boot}\n{begin}\n{request}\n{end}"));
        let server = set(start).start();
        check(&server, way);
        server.stop();
    }
}

fn json_of(server: &Server, request: &Request) -> Value {
    let response = server.client().request(request);
    serde_json::from_slice(&response.body)
        .unwrap_or_else(|e| panic!("{e}: {}\n{}", response.text(), server.log()))
}

const LOOK: &str = "
    $all = [$_ENV['DB_HOST'] ?? null, $_SERVER['DB_HOST'] ?? null, $_SERVER['DB_OPTIONS'] ?? null,
        getenv('DB_HOST'), $_SERVER['REQUEST_URI'] === '/' . ($_SERVER['QUERY_STRING'] ? '?' : '')
            . $_SERVER['QUERY_STRING']];
    $_ENV['DB_HOST'] = $_SERVER['DB_HOST'] = $_ENV['DIRT'] = 'of the former request';
    echo json_encode($all);";

#[test]
fn variables_set_in_boot_are_in_each_request() {
    let boot = "$_ENV['DB_HOST'] = $_SERVER['DB_HOST'] = 'x'; putenv('DB_HOST=x');
        $_SERVER['DB_OPTIONS'] = ['timeout' => 3];";
    let expected = json!(["x", "x", {"timeout": 3}, "x", true]);
    for order in ["GPCS", "EGPCS"] {
        for (way, begin, end) in WAYS {
            let start = script(&format!("{boot}\n{begin}\n{LOOK}\n{end}"));
            let server = start.define("variables_order", order).start();
            for target in ["/", "/?a=b", "/"] {
                let seen = json_of(&server, &Request::get(target));
                assert_eq!(seen, expected, "{way}, {order}, {target}");
            }
            server.stop();
        }
    }
}

/// A variable of the process's environment can be replaced or removed, as a .env file with
/// precedence does. Values of the request are above both.
#[test]
fn boot_replaces_environment_but_not_request() {
    let boot = "$_SERVER['APP_ENV'] = $_ENV['APP_ENV'] = 'test';
        unset($_SERVER['APP_SECRET'], $_ENV['APP_SECRET']);";
    let request = "echo json_encode([$_SERVER['APP_ENV'], $_ENV['APP_ENV'],
        isset($_SERVER['APP_SECRET']), isset($_ENV['APP_SECRET']), getenv('APP_ENV')]);";
    let set = |start: Start| {
        start.env("APP_ENV", "prod").env("APP_SECRET", "s").define("variables_order", "EGPCS")
    };
    each_way(boot, request, set, |server, way| {
        for _ in 0..2 {
            let expected = json!(["test", "test", false, false, "prod"]);
            assert_eq!(json_of(server, &Request::get("/")), expected, "{way}");
        }
    });
}

#[test]
fn request_wins_over_defaults_of_boot() {
    let boot = "$_SERVER['HTTP_X_TENANT'] ??= 'default'; $_GET['page'] ??= '1';
        $_COOKIE['theme'] ??= 'light'; $_POST['n'] ??= '0'; $_REQUEST['page'] ??= '1';";
    let request = "echo json_encode([$_SERVER['HTTP_X_TENANT'], $_GET['page'], $_COOKIE['theme'],
        $_POST['n'], $_REQUEST['page']]); $_GET['page'] = $_COOKIE['theme'] = 'dirt';";
    let own =
        Request::form("/?page=7", "n=3").header("X-Tenant", "blue").header("Cookie", "theme=dark");
    each_way(
        boot,
        request,
        |start| start,
        |server, way| {
            for _ in 0..2 {
                let seen = json_of(server, &Request::get("/"));
                assert_eq!(seen, json!(["default", "1", "light", "0", "1"]), "{way}");
                let seen = json_of(server, &own);
                assert_eq!(seen, json!(["blue", "7", "dark", "3", "7"]), "{way}");
            }
        },
    );
}

/// `Samovar\warmup()` handles an artificial request, whose data belongs to no visitor.
#[test]
fn superglobals_of_warmup_do_not_reach_requests() {
    let boot = "$_ENV['DB_HOST'] = 'x';
        Samovar\\warmup(function () {
            $_GET['q'] = 'warm'; $_SERVER['HTTPS'] = 'on'; $_COOKIE['session'] = 'abc';
            $_SERVER['HTTP_AUTHORIZATION'] = 'Basic eA=='; $_ENV['DB_HOST'] = 'warm';
        });";
    let request = "echo json_encode([$_GET, $_COOKIE, $_SERVER['HTTPS'] ?? null,
        $_SERVER['HTTP_AUTHORIZATION'] ?? null, $_ENV['DB_HOST']]);";
    each_way(
        boot,
        request,
        |start| start,
        |server, way| {
            let expected = json!([[], [], null, null, "x"]);
            assert_eq!(json_of(server, &Request::get("/")), expected, "{way}");
        },
    );
}
