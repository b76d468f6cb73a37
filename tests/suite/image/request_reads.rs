//! A boot that reads the request gets nothing, and its result applies to all visitors. A finding
//! names the data and the line.

use crate::image::{image, script};
use samovar_testkit::{Server, Start};
use serde_json::Value;

/// The boot is in line 2 of `index.php`, and ends in a call that takes requests.
fn boot(code: &str, model: &str) -> Start {
    script(&format!("{code}\n{model}"))
}

const CHECKPOINT: &str = "Samovar\\checkpoint(); echo 'hello';";
const SERVE: &str = "Samovar\\serve(function () { echo 'hello'; });";

/// Texts and places of the findings about request data.
fn found(server: &Server) -> Vec<(String, String)> {
    assert_eq!(server.get("/").text(), "hello", "{}", server.log());
    let findings = image(server)["findings"].clone();
    let of_request = |f: &&Value| f["kind"] == "request";
    let text = |f: &Value, key: &str| f[key].as_str().unwrap_or_default().to_owned();
    let findings = findings.as_array().expect("a list").iter().filter(of_request);
    findings.map(|f| (text(f, "what"), text(f, "where"))).collect()
}

fn names(server: &Server) -> Vec<String> {
    let name = |(what, _): (String, String)| {
        what.strip_prefix("reads of request data: ").expect("the text of a finding").to_owned()
    };
    found(server).into_iter().map(name).collect()
}

#[test]
fn request_data_read_in_boot_is_a_finding_with_name_and_line() {
    for (code, expected) in [
        ("$a = $_GET['page'] ?? 1;", "$_GET"),
        ("$a = isset($_POST['page']);", "$_POST"),
        ("$a = empty($_COOKIE['session']);", "$_COOKIE"),
        ("foreach ($_FILES as $file) {}", "$_FILES"),
        ("$a = count($_REQUEST);", "$_REQUEST"),
        ("(function (array $get) {})($_GET);", "$_GET"),
        ("$a = $_SERVER['REQUEST_URI'] ?? '';", "$_SERVER['REQUEST_URI']"),
        ("$a = isset($_SERVER['HTTP_HOST']);", "$_SERVER['HTTP_HOST']"),
        ("$n = 'REMOTE_' . 'ADDR'; $a = $_SERVER[$n] ?? '';", "$_SERVER['REMOTE_ADDR']"),
        ("$a = array_key_exists('HTTPS', $_SERVER);", "$_SERVER['HTTPS']"),
        ("$a = getenv('HTTP_HOST');", "getenv('HTTP_HOST')"),
        ("$a = getallheaders();", "getallheaders()"),
        ("$a = filter_input(INPUT_GET, 'page');", "filter_input()"),
        ("$a = filter_has_var(INPUT_COOKIE, 'page');", "filter_has_var()"),
        ("$a = file_get_contents('php://input');", "php://input"),
        ("session_start(); session_write_close();", "session_start()"),
    ] {
        for model in [CHECKPOINT, SERVE] {
            let server = boot(code, model).start();
            let found = found(&server);
            let [(what, place)] = &found[..] else { panic!("{code}: {found:?}") };
            assert_eq!(*what, format!("reads of request data: {expected}"), "{code}");
            assert!(place.ends_with("/index.php:2"), "{code}: {place}");
            assert_eq!(image(&server)["mode"], expected_mode(model), "{code}");
            server.stop();
        }
    }
}

fn expected_mode(model: &str) -> &'static str {
    if model == SERVE { "resident" } else { "shared" }
}

#[test]
fn other_data_read_in_boot_is_no_finding() {
    let server = boot(
        "$_SERVER['HTTP_HOST'] ??= 'localhost'; $a = $_SERVER['HTTP_HOST'];
         $_GET['page'] ??= max(1, 2); $a = $_GET['page']; $_POST['a'] = 1; $a = count($_POST);
         $a = [$_SERVER['SCRIPT_NAME'], $_SERVER['REQUEST_TIME'], $_SERVER['APP_ENV'] ?? '',
             $_ENV['APP_ENV'] ?? '', getenv('APP_ENV'), getenv(), count($_SERVER),
             filter_input(INPUT_ENV, 'APP_ENV'), filter_input(INPUT_SERVER, 'APP_ENV'),
             file_get_contents('php://memory')];
         $a = [isset($_SERVER['REQUEST_METHOD']), array_key_exists('REQUEST_METHOD', $_SERVER)];
         foreach ($_SERVER as $name => $value) {}
         $later = function () { return $_COOKIE['user'] ?? ''; };
         Samovar\\warmup(function () { $a = $_COOKIE['user'] ?? ''; });",
        "Samovar\\checkpoint(); $a = $_GET['x'] ?? $_SERVER['HTTP_ACCEPT'] ?? $later();
         echo 'hello';",
    )
    .start();
    assert_eq!(names(&server), [""; 0]);
    // Nor do requests make any.
    assert_eq!(server.get("/?x=1").text(), "hello");
    assert_eq!(names(&server), [""; 0]);
}

/// A framework makes its request object in its own file: the finding has that line, and the one of
/// the front controller.
#[test]
fn reads_of_one_line_are_one_finding_with_caller() {
    let code = "require 'framework.php';\n\n$r = Request::make();";
    let framework = "<?php class Request { static function make() {\n\
        return [$_GET, $_POST, $_COOKIE, $_FILES, $_SERVER['HTTP_HOST'] ?? '']; } }";
    let start = boot(code, CHECKPOINT);
    std::fs::write(start.folder().join("root/framework.php"), framework).expect("our own folder");
    let server = start.start();
    let found = found(&server);
    let [(what, place)] = &found[..] else { panic!("{found:?}") };
    let expected = "reads of request data: $_GET, $_POST, $_COOKIE, $_FILES, \
                    $_SERVER['HTTP_HOST'], called from ";
    assert!(what.starts_with(expected), "{what}");
    assert!(what.ends_with("/index.php:4"), "{what}");
    assert!(place.ends_with("/framework.php:2"), "{place}");
}

#[test]
fn intended_reads_are_no_finding() {
    let code = "$a = [$_GET, $_SERVER['HTTP_HOST'] ?? '']; $b = $_COOKIE;";
    for (allowed, expected) in [
        ("['$_GET']", vec!["$_SERVER['HTTP_HOST'], $_COOKIE"]),
        ("['$_GET', \"$_SERVER['HTTP_HOST']\", '$_COOKIE']", vec![]),
        ("['index.php']", vec![]),
        ("['other.php']", vec!["$_GET, $_SERVER['HTTP_HOST'], $_COOKIE"]),
    ] {
        let server = boot(code, CHECKPOINT).config(&format!("boot_reads = {allowed}")).start();
        assert_eq!(names(&server), expected, "{allowed}");
        server.stop();
    }
}

#[test]
fn image_errors_can_forbid_reads_of_request_data() {
    let start = || boot("$a = $_GET['page'] ?? 1;", CHECKPOINT);
    let (code, log) = start().args(["--image-errors", "request"]).ended();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("reads of request data: $_GET") && log.contains("hint:"), "{log}");
    // It has no fallback, so `all` does not include it.
    let server = start().args(["--image-errors", "all"]).start();
    assert_eq!(names(&server), ["$_GET"]);
    server.stop();
}

/// The lock of the session's file prevents an image. The finding names the session.
#[test]
fn session_started_in_boot_is_a_finding() {
    let server = boot("session_start();", CHECKPOINT).start();
    assert_eq!(server.get("/").text(), "hello");
    let image = image(&server);
    let kinds: Vec<_> = image["findings"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|f| f["kind"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(kinds, ["session", "request"], "{image}");
    let session = &image["findings"][0];
    assert_eq!(session["action"], "script", "{image}");
    let advice = session["advice"].as_str().unwrap_or_default();
    assert!(advice.contains("session_start()"), "{image}");
    assert!(session["where"].as_str().is_some_and(|at| at.ends_with("index.php:2")), "{image}");
}

/// `samovar check` does not run the application, and examines the text of its front controller.
#[test]
fn check_command_warns_of_reads_in_boot() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("index.php");
    let code = "<?php\n$a = $_COOKIE['language'] ?? 'en';\nSamovar\\checkpoint();\n$b = $_GET;\n";
    std::fs::write(&file, code).expect("our own folder");
    let check = |flags: &[&str]| {
        let mut command = std::process::Command::new(samovar_testkit::binary());
        command.arg("check").arg(&file).args(["--listen", "127.0.0.1:0", "--allow-root"]);
        let output = command.args(flags).output().expect("the binary runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let said = check(&[]);
    assert!(said.contains("reads $_COOKIE in line 2"), "{said}");
    assert!(!said.contains("$_GET"), "{said}");
    let intended = check(&["--boot-reads", "$_COOKIE"]);
    assert!(!intended.contains("reads $_COOKIE"), "{intended}");
}
