//! `samovar compare`: what a checkpoint gets wrong is found, what varies by nature is not, and nothing is left behind.

use samovar_testkit::{binary, eventually, family, is_root, kill, processes_naming};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const ALIKE: i32 = 0;
const DIFFERENT: i32 = 1;
const WRONG_USE: i32 = 2;
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

/// The application is `index.php` of a folder of its own.
fn application(php: &str) -> TempDir {
    let folder = TempDir::with_prefix("samovar-compare-test-").expect("a temporary folder");
    std::fs::write(folder.path().join("index.php"), format!("<?php\n{php}")).expect("our folder");
    std::fs::create_dir(folder.path().join("sessions")).expect("our folder");
    folder
}

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.arg("compare").arg(folder.join("index.php")).args(args).current_dir(folder).env_clear();
    command.args(["-d", "session.save_path=sessions", "-d", "display_errors=1"]);
    command.env(family::RUN, family::run()).stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    if is_root() {
        command.arg("--allow-root");
    }
    command
}

fn compare(folder: &Path, args: &[&str]) -> Output {
    command(folder, args).output().expect("the binary runs")
}

/// The exit status, the report, and each URL's differences in JSON.
fn report(folder: &TempDir, args: &[&str]) -> (Option<i32>, Value) {
    let output = compare(folder.path(), &[args, &["--json"]].concat());
    let report = serde_json::from_slice(&output.stdout);
    (output.status.code(), report.unwrap_or_else(|e| panic!("{e}: {}", text(&output))))
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// Times, tokens, sessions, ports and a counter that all requests share: the pages differ, and are alike.
const HONEST: &str = r"
    for ($i = 0; $i < 3000; $i++) { $work = md5($i); }
    class Cart { static int $things = 0; }
    Samovar\checkpoint();
    session_start();
    $_SESSION['seen'] = ($_SESSION['seen'] ?? 0) + 1;
    Cart::$things++;
    $log = __DIR__ . '/sessions/visits';
    file_put_contents($log, 'x', FILE_APPEND);
    header('X-Id: ' . uniqid());
    setcookie('last', (string) hrtime(true));
    echo '<p>At ', date('H:i:s'), ' token ', bin2hex(random_bytes(9)), ' ', base64_encode(random_bytes(9)),
        ' visit ', filesize($log), ' of this session ', $_SESSION['seen'], ', the cart holds ', Cart::$things,
        ' http://', $_SERVER['HTTP_HOST'], ':', $_SERVER['SERVER_PORT'], $_SERVER['REQUEST_URI'], '</p>';
    if ($_SERVER['REQUEST_URI'] === '/missing') { http_response_code(404); }
    if ($_SERVER['REQUEST_URI'] === '/fails') { throw new Exception('always'); }
";

#[test]
fn an_application_that_is_equal_is_alike() {
    let folder = application(HONEST);
    let urls = ["--urls", "/", "/cart?a=b", "/missing", "/fails", "http://shop.example/"];
    let (code, report) = report(&folder, &[&urls[..], &["--times", "6"]].concat());
    assert_eq!(code, Some(ALIKE), "{report:#}");
    assert_eq!(
        (&report["model"], &report["alike"]),
        (&"checkpoint".into(), &5.into()),
        "{report:#}"
    );
    let status = |n: usize| report["urls"][n]["booted"]["status"].clone();
    assert_eq!((status(0), status(2)), (200.into(), 404.into()));
    assert_eq!(report["urls"][4]["url"], "http://shop.example/");
    assert!(report["cpu_ratio"].as_f64().is_some_and(|ratio| ratio > 0.0), "{report:#}");
    let table = compare(folder.path(), &["--urls", "/", "--times", "2"]);
    assert_eq!(table.status.code(), Some(ALIKE), "{}", text(&table));
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(table.starts_with("checkpoint answers the one URL alike, at "), "{table}");
    assert!(table.contains("200 alike"), "{table}");
}

/// Each page shows one thing that stands above and should not.
const STALE: &str = r"
    class Boot { static string $token; static string $now; static string $method; static array $query; }
    Boot::$token = bin2hex(random_bytes(8));
    Boot::$now = (string) microtime(true);
    Boot::$method = $_SERVER['REQUEST_METHOD'] ?? 'none';
    Boot::$query = $_GET;
    ob_start();
    Samovar\checkpoint();
    echo '<p>Hello ', uniqid(), '</p>';
    switch (strtok($_SERVER['REQUEST_URI'], '?')) {
        case '/token': echo Boot::$token; break;
        case '/time': header('X-Since: ' . Boot::$now); break;
        case '/method': echo Boot::$method; break;
        case '/query': echo json_encode(Boot::$query); break;
        case '/status': http_response_code(Boot::$method === 'GET' ? 200 : 202); break;
    }
";

#[test]
fn what_is_stale_below_the_checkpoint_is_found() {
    let folder = application(STALE);
    let list = folder.path().join("urls.txt");
    std::fs::write(&list, "# all\n/\n/token\n/time\n\n/method\n/query?a=b\n/status\n")
        .expect("ours");
    let (code, report) = report(&folder, &["--urls", "urls.txt", "--times", "4"]);
    assert_eq!(code, Some(DIFFERENT), "{report:#}");
    let found: Vec<_> = report["urls"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|line| {
            let first = &line["differences"][0];
            let word = |name: &str| first[name].as_str().unwrap_or("none").to_owned();
            format!(
                "{} {} {}",
                line["url"].as_str().unwrap_or_default(),
                word("part"),
                word("kind")
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            "/ none none",
            "/token body stands still",
            "/time head stands still",
            "/method body differs",
            "/query?a=b body differs",
            "/status head differs"
        ],
        "{report:#}"
    );
    let difference = &report["urls"][3]["differences"][0];
    assert!(difference["script"].as_str().is_some_and(|s| s.contains("[GET]")), "{difference}");
    assert!(difference["booted"].as_str().is_some_and(|s| s.contains("[none]")), "{difference}");
    let table = compare(folder.path(), &["--urls", "/", "/method", "--times", "2"]);
    assert_eq!(table.status.code(), Some(DIFFERENT), "{}", text(&table));
    let table = text(&table);
    assert!(table.contains("checkpoint answers 1 of 2 URLs otherwise than a script"), "{table}");
    assert!(table.contains("200 DIFFERS"), "{table}");
}

/// However an application comes to be booted ahead, it is compared with its whole script.
#[test]
fn each_way_of_booting_ahead_is_compared() {
    let handler = "echo 'Hello ', $_GET['name'] ?? 'nobody';";
    let file = "<?php class Library { static int $used = 0; }";
    for (php, args, model) in [
        (
            format!("require 'library.php'; {handler}"),
            &["--checkpoint-after", "library.php"][..],
            "checkpoint",
        ),
        // Its own text does not say so: the first request finds out.
        (format!("require 'boot.php'; {handler}"), &[], "checkpoint"),
        (format!("Samovar\\serve(function () {{ {handler} }});"), &[], "resident"),
        (format!("Samovar\\serve(function () {{ {handler} }}, 1);"), &[], "checkpoint"),
    ] {
        let folder = application(&php);
        std::fs::write(folder.path().join("library.php"), file).expect("ours");
        std::fs::write(folder.path().join("boot.php"), "<?php Samovar\\checkpoint();")
            .expect("ours");
        let (code, report) =
            report(&folder, &[args, &["--urls", "/", "/?name=Ann", "--times", "3"]].concat());
        assert_eq!(code, Some(ALIKE), "{php}: {report:#}");
        assert_eq!(report["model"], model, "{php}");
    }
}

/// A resident application remembers; a script does not.
#[test]
fn what_a_resident_application_keeps_is_found() {
    let folder = application(
        "Samovar\\serve(function () { static $visits = 0; echo 'visit ', ++$visits; });",
    );
    let (code, report) = report(&folder, &["--workers", "1", "--times", "3"]);
    assert_eq!(code, Some(DIFFERENT), "{report:#}");
    assert_eq!(report["model"], "resident");
}

#[test]
fn what_cannot_be_compared_is_wrong_use() {
    let folder = application("echo 'no checkpoint';");
    std::fs::write(folder.path().join("empty.txt"), "# none\n").expect("ours");
    for (args, said) in [
        (&["--urls", "no-path"][..], "`no-path` cannot be asked for"),
        (&["--urls", "empty.txt"], "names none"),
        (&["--times", "1"], "--times"),
        (&["--wrokers", "1"], "did you mean `--workers`"),
        (&["--times", "2"], "nothing to compare"),
    ] {
        let output = compare(folder.path(), args);
        assert_eq!(output.status.code(), Some(WRONG_USE), "{args:?}: {}", text(&output));
        assert!(text(&output).contains(said), "{args:?}: {}", text(&output));
    }
    // A lock that is held above is a reason for whole scripts.
    let folder = application(
        "$lock = fopen(__DIR__ . '/sessions/lock', 'c'); flock($lock, LOCK_EX | LOCK_NB); Samovar\\checkpoint();",
    );
    let output = compare(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(WRONG_USE), "{}", text(&output));
    assert!(text(&output).contains("lock files below the checkpoint"), "{}", text(&output));
}

#[test]
fn a_server_that_does_not_start_says_why() {
    let folder = application("Samovar\\checkpoint();");
    let output = compare(folder.path(), &["--php", "/nowhere/samovar-php"]);
    assert_ne!(output.status.code(), Some(ALIKE));
    assert!(text(&output).contains("/nowhere/samovar-php"), "{}", text(&output));
    // Console workers are the real server's: here they would do their work twice.
    let script = folder.path().join("work.php");
    std::fs::write(&script, "<?php touch(__DIR__ . '/worked'); sleep(60);").expect("ours");
    std::fs::write(
        folder.path().join("samovar.toml"),
        "[[console]]\nname = \"w\"\nscript = \"work.php\"\n",
    )
    .expect("ours");
    let output = compare(folder.path(), &["--times", "2"]);
    assert_eq!(output.status.code(), Some(ALIKE), "{}", text(&output));
    assert!(!folder.path().join("worked").exists());
}

/// Whichever way this command ends, its servers do.
#[test]
fn its_servers_end_with_it() {
    let folder =
        application("Samovar\\checkpoint(); touch(__DIR__ . '/sessions/asked'); usleep(20000);");
    for signal in [SIGTERM, SIGKILL] {
        let mut running = command(folder.path(), &["--times", "10000"]);
        let mut running = running.stderr(Stdio::null()).spawn().expect("the binary runs");
        let asked = folder.path().join("sessions/asked");
        eventually("a request", || asked.exists().then_some(()));
        std::fs::remove_file(&asked).expect("it was made");
        assert!(!processes_naming(folder.path()).is_empty());
        kill(running.id().cast_signed(), signal);
        running.wait().expect("it was started here");
        eventually("no server", || processes_naming(folder.path()).is_empty().then_some(()));
    }
}
