//! Tests of FastCGI requests from web servers, and of the responses. The records are encoded here
//! by hand, not by the front's own code.

use super::*;

const BEGIN: u8 = 1;
const ABORT: u8 = 2;
const END: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;

fn record(kind: u8, id: u16, content: &[u8]) -> Vec<u8> {
    let padding = content.len() % 8;
    let mut out = vec![1, kind, (id >> 8) as u8, id as u8];
    out.extend_from_slice(&[(content.len() >> 8) as u8, content.len() as u8, padding as u8, 0]);
    out.extend_from_slice(content);
    out.resize(out.len() + padding, 0xee);
    out
}

fn begin(id: u16, keeps: bool) -> Vec<u8> {
    record(BEGIN, id, &[0, 1, u8::from(keeps), 0, 0, 0, 0, 0])
}

fn params(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in pairs {
        for bytes in [name, value] {
            out.extend_from_slice(&(bytes.len() as u32 | 1 << 31).to_be_bytes());
        }
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(value.as_bytes());
    }
    out
}

impl Server {
    /// Parameters that nginx sends for a request of `name`, a script of the root.
    fn told(&self, name: &str, further: &[(&str, &str)]) -> Vec<u8> {
        let filename = format!("{}{name}", self.root.path().display());
        let mut pairs = vec![
            ("SCRIPT_FILENAME", filename.as_str()),
            ("SCRIPT_NAME", name),
            ("REQUEST_URI", name),
            ("REQUEST_METHOD", "GET"),
            ("SERVER_PROTOCOL", "HTTP/1.1"),
            ("REMOTE_ADDR", "192.0.2.7"),
            ("HTTP_HOST", "example.com"),
        ];
        pairs.retain(|(name, _)| further.iter().all(|(other, _)| name != other));
        pairs.extend_from_slice(further);
        params(&pairs)
    }

    /// Records of a whole request without a body.
    fn request(&self, id: u16, keeps: bool, name: &str, further: &[(&str, &str)]) -> Vec<u8> {
        let told = record(PARAMS, id, &self.told(name, further));
        [begin(id, keeps), told, record(PARAMS, id, b""), record(STDIN, id, b"")].concat()
    }

    fn refused(&self, name: &str) -> u64 {
        let all = self.handle.counters().fastcgi_rejected_totals;
        let at = crate::Hostile::ALL.iter().position(|why| why.name() == name);
        all[at.expect("a reason")]
    }
}

/// Response to one request.
#[derive(Debug, Default)]
struct FcgiResponse {
    out: String,
    err: String,
    /// Protocol status of the end; `None` if the connection was closed before.
    ended: Option<u8>,
}

impl Client {
    fn record(&mut self) -> Option<(u8, u16, Vec<u8>)> {
        let header = self.take(8);
        let [1, kind, high, low, long, short, padding, _] = header[..] else {
            assert!(header.is_empty(), "no record: {header:?}");
            return None;
        };
        let length = usize::from(long) << 8 | usize::from(short);
        let content = self.take(length);
        self.take(usize::from(padding));
        (content.len() == length).then_some((kind, u16::from(high) << 8 | u16::from(low), content))
    }

    fn told_back(&mut self, id: u16) -> FcgiResponse {
        let mut response = FcgiResponse::default();
        while let Some((kind, of, content)) = self.record() {
            assert_eq!(of, id, "kind {kind}");
            match kind {
                STDOUT => response.out += &String::from_utf8_lossy(&content),
                STDERR => response.err += &String::from_utf8_lossy(&content),
                END => {
                    response.ended = Some(content[4]);
                    break;
                }
                other => panic!("a record of kind {other}"),
            }
        }
        response
    }
}

#[test]
fn php_gets_fields_and_variables_of_request() {
    let server = Server::fastcgi(|_| {}).work(|job| {
        let told = ["SCRIPT_NAME", "APP_ENV", "REQUEST_METHOD", "FCGI_ROLE", "HTTP_HOST"]
            .map(|name| job.variables.get(name).cloned().unwrap_or_default());
        let (host, proxy) = (job.headers.get("host").cloned(), job.headers.contains_key("proxy"));
        let text = format!("{told:?} {host:?} {proxy} {} {}", job.field("target"), job.flags);
        job.respond(&text)
    });
    let further = [("REQUEST_URI", "/a%20b?c"), ("APP_ENV", "prod"), ("HTTP_PROXY", "evil")];
    let mut client = server.client();
    client.send(&server.request(1, false, "/index.php", &further));
    let response = client.told_back(1);
    assert_eq!(response.ended, Some(0), "{response:?}");
    let (head, body) = response.out.split_once("\r\n\r\n").expect("a head");
    assert!(head.contains("content-type: text/plain") && !head.contains("Status:"), "{head}");
    assert_eq!(
        body,
        "[\"/index.php\", \"prod\", \"GET\", \"RESPONDER\", \"\"] Some(\"example.com\") false \
         /a%20b?c 10"
    );
    assert_eq!(client.rest(), "", "closed: nobody wanted it kept");
    assert_eq!(server.handle.counters().server.fastcgi_requests_total, 1);
}

#[test]
fn connection_is_kept_for_more_requests() {
    let server = Server::fastcgi(|_| {}).work(|job| {
        let name = job.field("script_name");
        job.respond(&name)
    });
    let mut client = server.client();
    for round in 0..20 {
        let name = if round % 2 == 0 { "/index.php" } else { "/other.php" };
        // In pieces, as from a slow network.
        for piece in server.request(7, true, name, &[]).chunks(if round == 3 { 1 } else { 5000 }) {
            client.send(piece);
        }
        let response = client.told_back(7);
        assert!(response.out.ends_with(&format!("\r\n\r\n{name}")), "{response:?}");
    }
    assert_eq!(server.handle.counters().server.connections_total, 1);
}

#[test]
fn bodies_of_any_length_arrive_complete() {
    let server = Server::fastcgi(|_| {}).work(|job| match job.body() {
        Some(body) => {
            let sum: u64 = body.iter().map(|b| u64::from(*b)).sum();
            job.respond(&format!("{} {sum}", body.len()))
        }
        None => After::Die,
    });
    let mut client = server.client();
    for length in [0, 1, 70_000, 3_000_000] {
        let body = pattern(length);
        let size = length.to_string();
        let further = [("REQUEST_METHOD", "POST"), ("CONTENT_LENGTH", size.as_str())];
        let told = record(PARAMS, 1, &server.told("/index.php", &further));
        client.send(&[begin(1, true), told, record(PARAMS, 1, b"")].concat());
        for piece in body.chunks(40_000) {
            client.send(&record(STDIN, 1, piece));
        }
        client.send(&record(STDIN, 1, b""));
        let sum: u64 = body.iter().map(|b| u64::from(*b)).sum();
        let response = client.told_back(1);
        assert!(response.out.ends_with(&format!("\r\n\r\n{length} {sum}")), "{response:?}");
    }
}

#[test]
fn body_shorter_than_declared_is_rejected() {
    let server = Server::fastcgi(|_| {}).work(|job| job.respond("never"));
    let mut client = server.client();
    let further = [("REQUEST_METHOD", "POST"), ("CONTENT_LENGTH", "10")];
    let told = record(PARAMS, 1, &server.told("/index.php", &further));
    let body = [record(STDIN, 1, b"short"), record(STDIN, 1, b"")].concat();
    client.send(&[begin(1, true), told, record(PARAMS, 1, b""), body].concat());
    let response = client.told_back(1);
    assert!(response.out.starts_with("Status: 400 Bad Request\r\n"), "{response:?}");
}

#[test]
fn long_response_is_complete_and_aborted_one_has_no_end() {
    let server = Server::fastcgi(|_| {}).work(|job| {
        job.head(200, "Content-Type: text/plain\n");
        for piece in pattern(1_000_000).chunks(9_999) {
            if !job.write(piece) {
                return After::Finish;
            }
        }
        if job.field("query") == "die" { After::Die } else { After::Finish }
    });
    let mut client = server.client();
    client.send(&server.request(1, true, "/index.php", &[]));
    let mut body = Vec::new();
    while let Some((kind, _, content)) = client.record() {
        match kind {
            STDOUT => body.extend_from_slice(&content),
            _ => break,
        }
    }
    let at = memchr::memmem::find(&body, b"\r\n\r\n").expect("a head") + 4;
    assert!(body[at..] == pattern(1_000_000)[..], "{} bytes", body.len() - at);
    client.send(&server.request(1, true, "/index.php", &[("QUERY_STRING", "die")]));
    assert_eq!(client.told_back(1).ended, None, "no end is told of half an answer");
}

#[test]
fn file_that_is_no_script_of_root_is_rejected() {
    let server = Server::fastcgi(|_| {}).work(|job| job.respond("ran"));
    server.file("picture.png", b"no true picture");
    server.file(".secret/a.php", b"<?php");
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("a.php"), "<?php").unwrap();
    let elsewhere = outside.path().join("a.php").display().to_string();
    let sneaky =
        format!("{}/../{}", server.root.path().display(), elsewhere.trim_start_matches('/'));
    let mut client = server.client();
    for (name, filename, status) in [
        ("/missing.php", None, "Status: 404 "),
        ("/", None, "Status: 404 "),
        ("/picture.png", None, "Status: 403 "),
        ("/picture.png/x.php", None, "Status: 403 "),
        ("/.secret/a.php", None, "Status: 404 "),
        ("/a.php", Some(elsewhere.as_str()), "Status: 404 "),
        ("/a.php", Some(sneaky.as_str()), "Status: 404 "),
        ("/a.php", Some("/etc/passwd"), "Status: 404 "),
        ("/a.php", Some(""), "Status: 404 "),
    ] {
        let further: Vec<_> = filename.map(|name| ("SCRIPT_FILENAME", name)).into_iter().collect();
        client.send(&server.request(1, true, name, &further));
        let response = client.told_back(1);
        assert!(response.out.starts_with(status), "{name} {filename:?}: {response:?}");
        assert_eq!(
            response.err.contains("Primary script unknown"),
            status.contains("404"),
            "{response:?}"
        );
    }
    client.send(&server.request(1, true, "/index.php", &[]));
    assert!(client.told_back(1).out.ends_with("\r\n\r\nran"));
}

#[test]
fn aliased_path_is_not_served_from_root() {
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::write(elsewhere.path().join("a.php"), "<?php").unwrap();
    let folder = elsewhere.path().canonicalize().unwrap();
    let server = Server::fastcgi(|o| {
        let location = samovar_config::Location {
            paths: vec!["/tool/*".to_owned()],
            alias: Some(folder),
            ..samovar_config::Location::default()
        };
        o.locations = vec![location];
    })
    .work(|job| job.respond("ran"));
    let mut client = server.client();
    client.send(&server.request(1, true, "/tool/a.php", &[]));
    let response = client.told_back(1);
    assert!(response.out.starts_with("Status: 404 "), "{response:?}");
}

#[test]
fn aborted_request_ends_and_connection_stays_open() {
    let (told, heard) = channel();
    let server = Server::fastcgi(|_| {}).work(move |job| {
        told.send(()).unwrap();
        if job.field("query") == "wait" {
            job.head(200, "Content-Type: text/plain\n");
            let worker = &mut *job;
            until("the client has gone", || !(worker.write(&vec![b'x'; 70_000]) && worker.flush()));
            return After::Finish;
        }
        job.respond("next")
    });
    let mut client = server.client();
    client.send(&server.request(1, true, "/index.php", &[("QUERY_STRING", "wait")]));
    heard.recv_timeout(WATCHDOG).unwrap();
    client.send(&record(ABORT, 1, b""));
    assert_eq!(client.told_back(1).ended, Some(0));
    client.send(&server.request(2, true, "/index.php", &[]));
    assert!(client.told_back(2).out.ends_with("next"));
    assert_eq!(server.handle.counters().server.fastcgi_aborted_total, 1);
    // The same with a closed connection instead of an abort record.
    client.send(&server.request(2, true, "/index.php", &[("QUERY_STRING", "wait")]));
    drop(client);
    let mut other = server.client();
    other.send(&server.request(1, true, "/index.php", &[]));
    assert!(other.told_back(1).out.ends_with("next"), "the worker is free again");
}

#[test]
fn concurrent_request_is_rejected_as_multiplexed() {
    let (go, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let server = Server::fastcgi(|_| {}).work(move |job| {
        gate.lock().unwrap().recv_timeout(WATCHDOG).unwrap();
        job.respond("one")
    });
    let mut client = server.client();
    client.send(
        &[server.request(1, true, "/index.php", &[]), server.request(2, true, "/index.php", &[])]
            .concat(),
    );
    let (kind, id, content) = client.record().expect("a record");
    assert_eq!((kind, id, content[4]), (END, 2, 1));
    go.send(()).unwrap();
    assert!(client.told_back(1).out.ends_with("one"));
    assert_eq!(server.handle.counters().pool.requests_total, 1);
}

#[test]
fn invalid_records_close_connection_and_are_counted() {
    let server = Server::fastcgi(|o| o.timeouts.header = Duration::from_millis(100));
    let stdin_first = [begin(1, true), record(STDIN, 1, b"x")].concat();
    let broken = [begin(1, true), record(PARAMS, 1, b"\x7f\x7fA"), record(PARAMS, 1, b"")].concat();
    let flood = record(77, 0, b"").repeat(2000);
    for (bytes, reason) in [
        (&b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..], "version"),
        (&stdin_first, "order"),
        (&record(BEGIN, 1, b"\0"), "short"),
        (&broken, "params"),
        (&flood, "flood"),
        (&begin(1, true), "slow"),
    ] {
        let mut client = server.client();
        client.send(bytes);
        client.rest();
        until(reason, || server.refused(reason) == 1);
    }
    assert_eq!(server.handle.counters().pool.requests_total, 0);
}

#[test]
fn too_many_parameters_are_431() {
    let server = Server::fastcgi(|o| o.fastcgi.params_max = 32).work(|job| job.respond("ok"));
    let long = "x".repeat(60_000);
    let names: Vec<_> = (0..40).map(|n| format!("HTTP_X_{n}")).collect();
    let many: Vec<_> = names.iter().map(|name| (name.as_str(), "1")).collect();
    for further in [&[("HTTP_A", long.as_str()), ("HTTP_B", &long)][..], &many] {
        let mut client = server.client();
        let told = server.told("/index.php", further);
        client.send(&begin(1, true));
        for piece in told.chunks(60_000) {
            client.send(&record(PARAMS, 1, piece));
        }
        client.send(&[record(PARAMS, 1, b""), record(STDIN, 1, b"")].concat());
        let response = client.told_back(1);
        assert!(response.out.starts_with("Status: 431 "), "{}", response.out);
        client.send(&server.request(1, true, "/index.php", &[]));
        assert!(
            client.told_back(1).out.ends_with("ok"),
            "the next request is none the worse for it"
        );
    }
}

#[test]
fn get_is_retried_after_worker_death() {
    let runs = Arc::new(Mutex::new(0));
    let server = Server::fastcgi(|_| {}).work(move |job| {
        let mut runs = runs.lock().unwrap();
        *runs += 1;
        if *runs == 1 { After::Die } else { job.respond("second") }
    });
    let mut client = server.client();
    client.send(&server.request(1, false, "/index.php", &[]));
    assert!(client.told_back(1).out.ends_with("second"));
    assert_eq!(server.handle.counters().pool.retries_total, 1);
}

#[test]
fn drain_finishes_requests_and_closes_kept_connections() {
    let (told, heard) = channel();
    let (go, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let mut server = Server::fastcgi(|_| {}).work(move |job| {
        told.send(()).unwrap();
        gate.lock().unwrap().recv_timeout(WATCHDOG).unwrap();
        job.respond("done")
    });
    let (mut idle, mut busy) = (server.client(), server.client());
    busy.send(&server.request(1, true, "/index.php", &[]));
    heard.recv_timeout(WATCHDOG).unwrap();
    server.handle.drain();
    assert_eq!(idle.rest(), "");
    go.send(()).unwrap();
    assert!(busy.told_back(1).out.ends_with("done"));
    assert_eq!(busy.rest(), "");
    server.stop();
}

#[test]
fn status_and_ping_match_php_fpm() {
    let change = |o: &mut Settings| {
        o.fastcgi.status_path = Some("/status".to_owned());
        o.fastcgi.ping_path = Some("/ping".to_owned());
        o.fastcgi.ping_response = "pong!".to_owned();
    };
    let server = Server::fastcgi(change);
    let mut client = server.client();
    client.send(&server.request(1, true, "/ping", &[]));
    assert!(client.told_back(1).out.starts_with("Status: 503 "), "no worker has booted");
    let server = Server::fastcgi(change).work(|job| job.respond("ok"));
    let mut client = server.client();
    client.send(&server.request(1, true, "/index.php", &[]));
    client.told_back(1);
    client.send(&server.request(1, true, "/ping", &[]));
    assert!(client.told_back(1).out.ends_with("\r\n\r\npong!"));
    client.send(&server.request(1, true, "/status", &[]));
    let text = client.told_back(1).out;
    for line in [
        "pool:                 samovar\n",
        "accepted conn:        3\n",
        "total processes:      1\n",
        "max listen queue:     ",
        "max active processes: ",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    client.send(&server.request(1, true, "/status", &[("QUERY_STRING", "full&json")]));
    let text = client.told_back(1).out;
    let at = text.find('{').expect("JSON");
    assert!(text[at..].contains("\"processes\":[{\"state\":\"Idle\",\"requests\":1}]}"), "{text}");
    for (query, kind, within) in [
        ("html&full", "text/html", "<tr><th>accepted conn</th><td>5</td></tr>"),
        ("xml", "text/xml", "<max-active-processes>"),
        ("xml&full", "text/xml", "<process><state>Idle</state><requests>1</requests></process>"),
        ("openmetrics", "application/openmetrics-text", "\nphpfpm_total_processes 1\n"),
    ] {
        client.send(&server.request(1, true, "/status", &[("QUERY_STRING", query)]));
        let text = client.told_back(1).out;
        assert!(text.contains(&format!("content-type: {kind}")), "{query}: {text}");
        assert!(text.contains(within), "{query}: {text}");
    }
    client.send(&server.request(1, true, "/status/x", &[]));
    assert!(client.told_back(1).out.starts_with("Status: 404 "));
}

/// If a script sends a file by a path or folder that is not configured here, the web server sends
/// it; otherwise the front does.
#[test]
fn sendfile_header_of_unknown_path_is_passed_on() {
    let files = tempfile::tempdir().expect("a folder");
    std::fs::write(files.path().join("a"), "ours").expect("our own file");
    let change = |settings: &mut Settings| {
        let (named, found) =
            (files.path().to_owned(), files.path().canonicalize().expect("it is there"));
        let folder = samovar_config::SendFolder { named, found };
        settings.sendfile.insert("/ours/".to_owned(), folder);
    };
    let send = |job: &mut Job<'_>| {
        let line = job.field("query");
        job.head(200, &format!("{line}\n"));
        job.write(b"body");
        After::Finish
    };
    let server = Server::fastcgi(change).work(send);
    let ask = |line: &str| {
        let mut client = server.client();
        client.send(&server.request(1, false, "/index.php", &[("QUERY_STRING", line)]));
        client.told_back(1)
    };
    for line in ["x-accel-redirect: /theirs/a", "x-accel-redirect: @named", "x-sendfile: /theirs/a"]
    {
        let response = ask(line);
        assert!(
            response.out.contains(line) && response.out.ends_with("body"),
            "{line}: {}",
            response.out
        );
    }
    let ours = ask("x-accel-redirect: /ours/a").out;
    assert!(ours.ends_with("\r\n\r\nours") && !ours.contains("x-accel"), "{ours}");
    let nowhere = ask("x-accel-redirect: /ours/").out;
    assert!(nowhere.starts_with("Status: 403") && !nowhere.contains("body"), "{nowhere}");
}
