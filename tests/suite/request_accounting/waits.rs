//! Waits: kinds and names of peers, their limit, and waits for clients.

use crate::request_accounting::bench::{ask, figures, sample, serving, started, waited};
use samovar_testkit::eventually;
use samovar_testkit::family;
use samovar_testkit::http::Request;
use std::io::Write;

/// Each step waits for some ms and prints the peer's name. Steps whose time starts before the wait
/// are long, because a busy machine may run other processes in between.
const STEPS: &str = r#"
    Samovar\route($_GET['do']);
    $pair = fn () => stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    $wait = function ($stream) { stream_set_timeout($stream, 0, 5000); fread($stream, 1); };
    switch ($_GET['do']) {
    case 'tcp':
        $server = stream_socket_server('tcp://127.0.0.1:0');
        $client = stream_socket_client('tcp://' . stream_socket_get_name($server, false));
        $wait($client);
        echo stream_socket_get_name($server, false);
        break;
    case 'udp':
        $server = stream_socket_server('udp://127.0.0.1:0', $e, $m, STREAM_SERVER_BIND);
        $client = stream_socket_client('udp://' . stream_socket_get_name($server, false));
        $wait($client);
        echo stream_socket_get_name($server, false);
        break;
    case 'unix':
        $path = sys_get_temp_dir() . '/ledger-' . getmypid() . '.sock';
        $server = stream_socket_server("unix://$path");
        $client = stream_socket_client("unix://$path");
        $wait($client);
        unlink($path);
        echo $path;
        break;
    case 'select':
        [$a, $b] = [$pair(), $pair()];
        $read = [$a[0], $b[0]]; $none = null;
        stream_select($read, $none, $none, 0, 5000);
        break;
    case 'pipe':
        $from = popen('sleep 0.5; echo', 'r');
        fgets($from);
        pclose($from);
        break;
    case 'child':
        proc_close(proc_open(['sleep', '0.5'], [], $pipes));
        break;
    case 'sleep':
        usleep(2000); time_nanosleep(0, 2_000_000); time_sleep_until(microtime(true) + 0.5);
        break;
    case 'tasks':
        Samovar\parallel(array_fill(0, 4, function () {
            $server = stream_socket_server('tcp://127.0.0.1:0');
            $client = stream_socket_client('tcp://' . stream_socket_get_name($server, false));
            stream_set_timeout($client, 0, 500000);
            fread($client, 1);
        }));
        break;
    case 'refused':
        set_error_handler(fn () => true);
        stream_socket_client('tcp://127.0.0.1:1', $e, $m, 1);
        break;
    case 'many':
        for ($i = 0; $i < 40; $i++) {
            $servers[$i] = stream_socket_server('tcp://127.0.0.1:0');
            $clients[$i] =
                stream_socket_client('tcp://' . stream_socket_get_name($servers[$i], false));
            stream_set_timeout($clients[$i], 0, 1000);
            fread($clients[$i], 1);
        }
        break;
    case 'none':
        for ($i = 0; $i < 1000; $i++) { file_exists(__FILE__); fstat(fopen(__FILE__, 'r')); }
        break;
    case 'body':
        echo strlen(file_get_contents('php://input'));
        break;
    }
"#;

const MS: u64 = 1_000_000;

#[test]
fn waits_are_accounted_with_peer_name() {
    let server = started(serving("resident", STEPS).workers(1), "resident");
    for (step, kind, peer, times, ms) in [
        ("tcp", "tcp", None, 1, 4),
        ("udp", "udp", None, 1, 4),
        ("unix", "unix", Some("/ledger-*.sock"), 1, 4),
        ("select", "poll", Some(""), 1, 4),
        ("pipe", "pipe", Some(""), 1, 8),
        ("child", "pipe", Some("child"), 1, 8),
        ("sleep", "sleep", Some(""), 3, 5),
    ] {
        let response = server.get(&format!("/?do={step}")).text();
        let told = figures(&server, step, 1);
        let (found, ns) = waited(&told, kind, peer.unwrap_or(&response));
        assert!(found >= times && ns >= ms * MS && ns < 2_000 * MS, "{step} ({response}): {told}");
        let waiting = told["costs"]["waiting_ns"].as_u64();
        assert!(waiting >= Some(ns) && waiting <= told["costs"]["run_ns"].as_u64(), "{told}");
    }
    server.get("/?do=refused");
    let all = figures(&server, "refused", 1);
    assert!(waited(&all, "other", "").0 == 0, "a peer that refuses has its name: {all}");
    server.get("/?do=none");
    let told = figures(&server, "none", 1);
    assert_eq!(told["costs"]["waiting_ns"], 0, "who does not sleep has not waited: {told}");
    assert_eq!(sample(&server, "samovar_insight_reports_malformed_total"), 0);
    server.stop();
}

#[test]
fn peers_beyond_limit_share_one_entry() {
    let server = started(serving("checkpoint", STEPS).workers(1), "checkpoint");
    server.get("/?do=many");
    let told = figures(&server, "many", 1);
    let of =
        |kind| told["waits"].as_array().expect("a list").iter().filter(move |w| w["kind"] == kind);
    assert_eq!((of("tcp").count(), of("other").count()), (33, 0), "{told}");
    assert_eq!(waited(&told, "tcp", "(other)").0, 8, "{told}");
    server.stop();
}

/// A session can be stolen with its id, which is the name of the file whose lock PHP waits for.
#[test]
fn session_id_does_not_leave_worker() {
    const ID: &str = "0a4f1b2c3d4e5f60718293a4b5";
    let work = format!(
        "Samovar\\route('session?token={ID}'); session_save_path(sys_get_temp_dir()); \
         session_id('{ID}'); session_start(); usleep(400_000); echo session_id();"
    );
    let settings = "[insight]\nslow_request = '1ms'\nslow_log = 'slow.log'\n";
    let server = started(serving("script", &work).workers(2).config(settings), "script");
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert_eq!(server.get("/").text(), ID));
        }
    });
    let told = figures(&server, "session?(redacted)", 2);
    assert!(waited(&told, "lock", "session file").0 >= 1, "{told}");
    let log = server.folder().join("slow.log");
    let records = eventually("both are logged", || {
        let text = std::fs::read_to_string(&log).ok()?;
        (text.lines().count() >= 2).then_some(text)
    });
    assert!(records.contains("× lock session file"), "{records}");
    let pages = ["/metrics", "/api/requests", "/requests", "/routes", "/"];
    for shown in pages.map(|path| ask(&server, path)).iter().chain([&records]) {
        assert!(!shown.contains(ID), "{shown}");
    }
    let status = server.status().to_string();
    assert!(!status.contains(ID), "{status}");
    server.stop();
}

#[test]
fn wait_for_slow_client_is_accounted() {
    let site = serving("script", STEPS).workers(1).args(["--request-buffering", "false"]);
    let server = started(site, "script");
    let mut client = server.client();
    let whole = Request::post("/?do=body", "text/plain", vec![b'x'; 300_000]).bytes();
    let (now, later) = whole.split_at(200_000);
    client.send(now);
    // A busy worker sleeps only while it waits for its client.
    eventually("the worker waits for the rest", || {
        let worker = &server.status()["workers"][0];
        let pid = i32::try_from(worker["pid"].as_i64()?).ok()?;
        (worker["state"] == "busy" && family::state_of(pid)? == "S").then_some(())
    });
    client.stream().flush().expect("a socket");
    client.send(later);
    assert_eq!(client.read(false).text(), "300000");
    let told = figures(&server, "body", 1);
    assert!(waited(&told, "client", "").0 >= 1, "{told}");
    server.stop();
}

/// Each task is charged its share of the time for which the process slept.
#[test]
fn concurrent_waits_of_tasks_count_once() {
    let server = started(serving("script", STEPS).workers(1), "script");
    server.get("/?do=tasks");
    let told = figures(&server, "tasks", 1);
    let (times, ns) = waited(&told, "tcp", "");
    assert_eq!(times, 4, "{told}");
    assert!(ns >= 36 * MS, "they have waited: {told}");
    let run = told["costs"]["run_ns"].as_u64().expect("a number");
    assert!(ns <= run, "no longer than the request: {told}");
    server.stop();
}
