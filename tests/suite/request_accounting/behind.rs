//! Work of a script after its response, or after its client's disconnect: it counts as cost of the
//! request.

use crate::request_accounting::bench::{
    MODELS, cpu_of_workers, figures, serving, started, total, waited,
};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, eventually};
use serde_json::Value;

const MS: u64 = 1_000_000;

/// Uses 20 ms of CPU time, sleeps for 20 ms and allocates 8 MB after the response, and names its
/// route there. The CPU time reported by the kernel is written to a file.
const WORK: &str = r"
    $used = function (): int {
        $all = getrusage();
        return 1_000_000 * ($all['ru_utime.tv_sec'] + $all['ru_stime.tv_sec'])
            + $all['ru_utime.tv_usec'] + $all['ru_stime.tv_usec'];
    };
    $from = $used();
    ignore_user_abort(true);
    switch ($_GET['how']) {
    case 'finish':
        echo 'bye';
        fastcgi_finish_request();
        break;
    case 'length':
        header('Content-Length: 3');
        echo 'bye';
        ob_get_level() && ob_end_flush();
        flush();
        break;
    case 'leave':
        touch(getenv('NOTES') . '/begun');
        while (!connection_aborted()) { usleep(1000); echo ' '; flush(); }
        break;
    }
    Samovar\route('behind ' . $_GET['how']);
    for ($end = hrtime(true) + 20_000_000; hrtime(true) < $end;);
    usleep(20_000);
    $block = str_repeat('x', 8 << 20);
    file_put_contents(getenv('NOTES') . '/' . $_GET['how'],
        ($used() - $from) . ' ' . memory_get_peak_usage());
";

/// The request's own measurements: CPU time in ns, and peak memory in bytes.
fn noted(folder: &std::path::Path, how: &str) -> (u64, u64) {
    let text = std::fs::read_to_string(folder.join(how)).expect("it has noted that");
    let (cpu_us, peak) = text.split_once(' ').expect("two numbers");
    (cpu_us.parse::<u64>().expect("µs") * 1_000, peak.parse().expect("bytes"))
}

fn is_idle(server: &Server) -> bool {
    let status = server.status();
    let workers = status["workers"].as_array().expect("a list");
    workers.iter().all(|worker| worker["state"] == "idle")
}

/// `before`: CPU time of the workers before the request.
fn check(server: &Server, folder: &std::path::Path, how: &str, end: &str, before: u64) {
    let told = figures(server, &format!("behind {how}"), 1);
    let (cpu_ns, peak) = noted(folder, how);
    let told_of = |what: &str| told["costs"][what].as_u64().expect("a number");
    let cpu = told["costs"]["cpu"]["sum_ns"].as_u64().expect("a number");
    // The request cannot measure its own activation and end; the kernel counts both.
    eventually("the worker is idle", || is_idle(server).then_some(()));
    let most = cpu_of_workers(server) - before + MS;
    assert!(
        (cpu_ns - cpu_ns / 20..most).contains(&cpu),
        "{how}: {cpu} of {cpu_ns} to {most}: {told}"
    );
    assert!(told_of("peak_bytes_max") + (64 << 10) >= peak, "{how}: {told}");
    let (times, ns) = waited(&told, "sleep", "");
    assert!(times >= 1 && ns >= 19 * MS, "{how}: {told}");
    assert!(told_of("run_ns") >= 40 * MS, "{how}: {told}");
    let label = format!("end=\"{end}\"");
    assert!(total(server, "samovar_requests_ended_total", &label) >= 1, "{how} ends as {end}");
}

#[test]
fn work_after_response_is_accounted() {
    for model in MODELS {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let notes = folder.path().to_str().expect("we have named it");
        let server = started(serving(model, WORK).workers(1).env("NOTES", notes), model);
        // The start of the worker is part of its first request.
        server.get("/?how=first");
        figures(&server, "behind first", 1);
        for how in ["finish", "length"] {
            let before = cpu_of_workers(&server);
            assert_eq!(server.get(&format!("/?how={how}")).text(), "bye", "{model}: {how}");
            check(&server, folder.path(), how, "completed", before);
        }
        let before = cpu_of_workers(&server);
        let mut client = server.client();
        client.send(&Request::get("/?how=leave").bytes());
        eventually("the request runs", || folder.path().join("begun").exists().then_some(()));
        drop(client);
        check(&server, folder.path(), "leave", "aborted", before);
        // Each request has one row: none is under the name derived from its path.
        let all: Value =
            serde_json::from_str(&crate::request_accounting::bench::ask(&server, "/api/routes"))
                .expect("JSON");
        let names: Vec<_> = all.as_array().expect("a list").iter().map(|r| &r["route"]).collect();
        assert_eq!(names.len(), 4, "{model}: {names:?}");
        server.stop();
    }
}
