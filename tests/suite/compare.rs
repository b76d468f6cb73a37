//! `samovar compare`: finds wrong results of a checkpoint, ignores expected variation, and leaves
//! no processes or files.

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

/// Creates a folder with the application as `index.php`.
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

/// Exit status and JSON report, which contains the differences of each URL.
fn report(folder: &TempDir, args: &[&str]) -> (Option<i32>, Value) {
    let output = compare(folder.path(), &[args, &["--json"]].concat());
    let report = serde_json::from_slice(&output.stdout);
    (output.status.code(), report.unwrap_or_else(|e| panic!("{e}: {}", text(&output))))
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// Times, tokens, sessions, ports and a counter shared by all requests: the pages vary, and still
/// count as equal.
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
    echo '<p>At ', date('H:i:s'), ' token ', bin2hex(random_bytes(9)), ' ',
        base64_encode(random_bytes(9)), ' visit ', filesize($log), ' of this session ',
        $_SESSION['seen'], ', the cart holds ', Cart::$things, ' http://',
        $_SERVER['HTTP_HOST'], ':', $_SERVER['SERVER_PORT'], $_SERVER['REQUEST_URI'], '</p>';
    if ($_SERVER['REQUEST_URI'] === '/missing') { http_response_code(404); }
    if ($_SERVER['REQUEST_URI'] === '/fails') { throw new Exception('always'); }
";

#[test]
fn correct_checkpoint_compares_as_equal() {
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
    let ratio = report["cpu_ratio"].as_f64().unwrap_or_default();
    let bound = |at: usize| report["cpu_ratio_interval"][at].as_f64();
    assert!(ratio > 0.0, "{report:#}");
    assert!(bound(0).is_some_and(|low| low <= ratio), "{report:#}");
    assert!(bound(1).is_some_and(|high| high >= ratio), "{report:#}");
    let table = compare(folder.path(), &["--urls", "/", "--times", "2"]);
    assert_eq!(table.status.code(), Some(ALIKE), "{}", text(&table));
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(
        table.starts_with("checkpoint: the response of the URL is the same as a script's, with "),
        "{table}"
    );
    assert!(table.contains("200 alike"), "{table}");
}

/// Each page shows one value that was computed above the checkpoint and is stale.
const STALE: &str = r"
    class Boot {
        static string $token; static string $now; static string $method; static array $query; }
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
fn stale_state_below_checkpoint_is_found() {
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
            "/token body constant",
            "/time head constant",
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
    assert!(
        table.contains("checkpoint: the responses of 1 of 2 URLs differ from a script's"),
        "{table}"
    );
    assert!(table.contains("200 DIFFERS"), "{table}");
}

/// Each way to boot an application ahead is compared with the whole script.
#[test]
fn each_way_of_booting_ahead_is_compared_with_script() {
    let handler = "echo 'Hello ', $_GET['name'] ?? 'nobody';";
    let file = "<?php class Library { static int $used = 0; }";
    for (php, args, model) in [
        (
            format!("require 'library.php'; {handler}"),
            &["--checkpoint-after", "library.php"][..],
            "checkpoint",
        ),
        // The front controller's own text names no checkpoint; the first request finds the call.
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

/// A resident application keeps state between requests; a script does not.
#[test]
fn state_kept_by_resident_application_is_found() {
    let folder = application(
        "Samovar\\serve(function () { static $visits = 0; echo 'visit ', ++$visits; });",
    );
    let (code, report) = report(&folder, &["--workers", "1", "--times", "3"]);
    assert_eq!(code, Some(DIFFERENT), "{report:#}");
    assert_eq!(report["model"], "resident");
}

#[test]
fn comparison_without_booted_application_or_valid_urls_is_refused() {
    let folder = application("echo 'no checkpoint';");
    std::fs::write(folder.path().join("empty.txt"), "# none\n").expect("ours");
    for (args, said) in [
        (&["--urls", "no-path"][..], "`no-path` cannot be requested"),
        (&["--urls", "empty.txt"], "contains no URL"),
        (&["--times", "1"], "--times"),
        (&["--wrokers", "1"], "did you mean `--workers`"),
        (&["--times", "2"], "nothing to compare"),
    ] {
        let output = compare(folder.path(), args);
        assert_eq!(output.status.code(), Some(WRONG_USE), "{args:?}: {}", text(&output));
        assert!(text(&output).contains(said), "{args:?}: {}", text(&output));
    }
    // A lock taken above the checkpoint makes the server run whole scripts.
    let folder = application(
        "$lock = fopen(__DIR__ . '/sessions/lock', 'c'); flock($lock, LOCK_EX | LOCK_NB); \
         Samovar\\checkpoint();",
    );
    let output = compare(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(WRONG_USE), "{}", text(&output));
    assert!(text(&output).contains("lock files after the checkpoint"), "{}", text(&output));
}

#[test]
fn failed_server_start_is_explained_and_console_workers_stay_off() {
    let folder = application("Samovar\\checkpoint();");
    let output = compare(folder.path(), &["--php", "/nowhere/samovar-php"]);
    assert_ne!(output.status.code(), Some(ALIKE));
    assert!(text(&output).contains("/nowhere/samovar-php"), "{}", text(&output));
    // Console workers belong to the real server. If `compare` started them too, they would do their
    // work twice.
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

/// The servers end with the command, on SIGTERM and on SIGKILL.
#[test]
fn servers_of_compare_end_with_the_command() {
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
