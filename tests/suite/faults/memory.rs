//! Large requests and large responses need little memory.

use crate::faults::stage::{app, assert_serves, file_of, is_hello, proc_number, workers_in};
use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, eventually, family, http2};

/// Maximum growth of the server's resident memory for one request of any size.
const GROWTH_KB_MAX: u64 = 12 * 1024;

/// Highest resident memory of the server process so far, in KB.
/// Peak of the resident memory. The kernel adds its counters of several cores up in batches, so a
/// later value can be slightly smaller.
fn peak_kb(server: &Server) -> u64 {
    proc_number(server.pid(), "VmHWM").expect("it runs")
}

#[test]
fn large_upload_needs_little_memory() {
    let start =
        app().workers(1).define("post_max_size", "64M").define("upload_max_filesize", "64M");
    let server = start.start();
    assert_serves(&server, "at first");
    let before = peak_kb(&server);
    let content: Vec<u8> = (0..20_000_000u32).map(|n| (n ^ (n >> 9)) as u8).collect();
    let body = [
        b"--xx\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n".as_slice(),
        &content,
        b"\r\n--xx--\r\n",
    ]
    .concat();
    let request = Request::post("/upload", "multipart/form-data; boundary=xx", body);
    let response = server.client().request(&request);
    let words: Vec<_> = response.text().split(' ').map(str::to_owned).collect();
    assert_eq!(words[0], "20000000", "{response:?}");
    assert!(words[2].parse::<u64>().is_ok_and(|peak| peak < 8_000_000), "{words:?}");
    let growth = peak_kb(&server).saturating_sub(before);
    assert!(growth < GROWTH_KB_MAX, "{growth} KB for 20 MB");
    assert_eq!(std::fs::read_dir(server.folder().join("uploads")).expect("ours").count(), 0);
}

#[test]
fn large_response_waits_in_spill_file_and_frees_worker() {
    const BYTES: u64 = 50 * 1024 * 1024;
    let server = app().workers(1).start();
    assert_serves(&server, "at first");
    let before = peak_kb(&server);
    let mut client = server.client();
    client.send(&Request::get(&format!("/flood?bytes={BYTES}")).bytes());
    let head = client.read_head().expect("a head");
    assert_eq!(head.status, 200);
    eventually("its worker is free", || (!workers_in(&server, "idle").is_empty()).then_some(()));
    assert_serves(&server, "while the first answer is unread");
    reads_in_little_memory(&server, client, BYTES, before);
}

/// A slow reader of a file once cost 300 KB, and most of it was kept after its disconnect.
#[test]
fn slow_file_readers_need_little_memory_and_release_it() {
    const CROWD: u64 = 300;
    /// nginx needs 73 KB.
    const KB_EACH_MAX: u64 = 130;
    let folder = app();
    let site = folder.folder().join("site");
    std::fs::create_dir(&site).expect("ours");
    std::fs::write(site.join("big.bin"), vec![7; 20_000_000]).expect("room");
    let server = Server::at(site).workers(1).start();
    let resident_kb = || proc_number(server.pid(), "VmRSS").expect("it runs");
    let ask = |client: &mut Client| {
        client.send(&Request::get("/big.bin").bytes());
        assert_eq!(client.read_head().expect("a head").status, 200);
    };
    // Memory allocated once, at the first request, does not count.
    ask(&mut server.client());
    let before = resident_kb();
    let mut crowd: Vec<_> = (0..CROWD).map(|_| server.client()).collect();
    crowd.iter_mut().for_each(ask);
    let most = resident_kb() - before;
    assert!(most < CROWD * KB_EACH_MAX, "{} KB each", most / CROWD);
    drop(crowd);
    eventually("the memory is given back", || {
        (resident_kb().saturating_sub(before) < most / 3).then_some(())
    });
}

/// With HTTP/2, many requests need few connections. The memory for eight of them was once kept
/// after their disconnect.
#[test]
fn slow_http2_streams_release_their_memory() {
    const CONNECTIONS: usize = 8;
    const STREAMS: u32 = 100;
    // Otherwise the client gets 503 when it has left its share of the buffers unread.
    let server = app().workers(2).args(["--buffer-share", "100"]).start();
    assert_serves(&server, "at first");
    let resident_kb = || proc_number(server.pid(), "VmRSS").expect("it runs");
    let before = resident_kb();
    let requests =
        |status: &serde_json::Value| status["requests_total"].as_u64().expect("a number");
    let requests_before = requests(&server.status());
    let mut crowd = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut connection = http2::Connection::open(server.address()).expect("a connection");
        for stream in 0..STREAMS {
            connection.get(2 * stream + 1, "/flood?bytes=400000").expect("a request");
        }
        crowd.push(connection);
    }
    // The clients do not read, so the front keeps the responses to all accepted requests.
    eventually("all answers", || {
        let status = server.status();
        let are_idle = workers_in(&server, "idle").len() == 2 && status["queue_depth"] == 0;
        let waiting = status["in_flight"].as_u64().expect("a number");
        let are_all =
            requests(&status) - requests_before == CONNECTIONS as u64 * u64::from(STREAMS);
        (are_all && are_idle && waiting > 200).then_some(())
    });
    let most = resident_kb() - before;
    assert!(most > 30_000, "{most} KB are no crowd's");
    drop(crowd);
    eventually("the memory is given back", || {
        (resident_kb().saturating_sub(before) < most / 3).then_some(())
    });
}

/// Reads the rest of a response completely. The server's memory has not grown by it since `before`.
fn reads_in_little_memory(server: &Server, mut client: Client, bytes: u64, before: u64) {
    read_flood(&mut client, bytes);
    let growth = peak_kb(server).saturating_sub(before);
    assert!(growth < GROWTH_KB_MAX, "{growth} KB for 50 MB");
    let status = server.status();
    let rss = status["workers"][0]["rss_bytes"].as_u64().expect("a number");
    assert!((1_000_000..200_000_000).contains(&rss), "{status}");
    assert!(is_hello(&client.get("/hello")), "on the same connection");
}

fn read_flood(client: &mut Client, bytes: u64) {
    let mut got = 0;
    while let Some(chunk) = client.read_chunk().expect("chunks") {
        if chunk.is_empty() {
            break;
        }
        got += chunk.len() as u64;
    }
    assert_eq!(got, bytes);
}

#[test]
fn large_response_without_spill_file_waits_in_worker() {
    const BYTES: u64 = 50 * 1024 * 1024;
    let server = app().workers(1).args(["--response-spill-bytes-max", "0"]).start();
    assert_serves(&server, "at first");
    let (before, progress) = (peak_kb(&server), file_of(&server, "progress"));
    let sent = || {
        let text = std::fs::read_to_string(&progress).unwrap_or_default();
        text.parse::<u64>().unwrap_or(0)
    };
    let mut client = server.client();
    client
        .send(&Request::get(&format!("/flood?bytes={BYTES}&file={}", progress.display())).bytes());
    let head = client.read_head().expect("a head");
    assert_eq!(head.status, 200);
    // The script blocks when the socket's buffers are full.
    let (mut last, mut same) = (0, 0);
    eventually("the script waits", || {
        (last, same) = (sent(), if last > 0 && last == sent() { same + 1 } else { 0 });
        (same > 60).then_some(())
    });
    assert!(last < BYTES / 2, "{last} bytes went where nobody read them");
    reads_in_little_memory(&server, client, BYTES, before);
}

/// For a PHP process the kernel adds half of the machine's memory to its OOM score, and kills the
/// process with the highest score. So a worker is killed, not the server.
#[test]
fn php_processes_are_oom_victims_before_the_server() {
    let server = Server::script("<?php echo 'page';").workers(1).start();
    let score = |pid: i32| -> i32 {
        let text = std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj"));
        text.expect("a process of ours").trim().parse().expect("a number")
    };
    let own = score(server.pid());
    for pid in [vec![server.worker_pid()], family::children_of(server.pid())].concat() {
        assert_eq!(score(pid), (own + 500).min(1000), "process {pid}");
    }
    server.stop();
}
