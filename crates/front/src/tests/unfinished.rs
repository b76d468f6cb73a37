//! Tests of clients that open many connections and finish no request.

use super::*;

/// More than the number of unfinished connections of a client that may all be closed.
const MANY: usize = 40;

fn full_server(change: impl FnOnce(&mut Settings)) -> Server {
    let server = Server::with(8, |settings| {
        settings.limits.connections_max = MANY;
        settings.timeouts.header = WATCHDOG;
        settings.timeouts.body = WATCHDOG;
        settings.timeouts.idle = WATCHDOG;
        settings.timeouts.write = WATCHDOG;
        change(settings);
    });
    server.work(|job| {
        let length = job.body().map_or(0, |body| body.len());
        job.respond(&format!("ok {length}"))
    })
}

impl Server {
    /// A client with another address of this host.
    fn client_at(&self, last: u8) -> Client {
        Client::connect_from([127, 0, 0, last], self.address)
    }

    /// Clients that have sent only these bytes. All have been accepted.
    fn unfinished(&self, last: u8, count: usize, bytes: &[u8]) -> Vec<Client> {
        let before = self.handle.counters().server.connections;
        let open = |_| {
            let mut client = self.client_at(last);
            client.send(bytes);
            client
        };
        let clients = (0..count).map(open).collect();
        let expected = before + count as u64;
        until("all are accepted", || self.handle.counters().server.connections == expected);
        clients
    }

    fn is_served(client: &mut Client) {
        client.send(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n");
        assert_eq!(client.reply(false).text(), "ok 0");
    }
}

#[test]
fn unfinished_requests_of_one_client_keep_no_other_out() {
    let starts: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\nHost: t\r\nX: ",
        b"GET / HT",
        b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nab",
        b"POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    ];
    for threads in [1, 3] {
        for start in starts {
            let server = full_server(|settings| settings.front_threads = threads);
            let _flood = server.unfinished(2, MANY, start);
            let newcomers: Vec<_> = (3..8)
                .map(|last| {
                    let mut client = server.client_at(last);
                    Server::is_served(&mut client);
                    client
                })
                .collect();
            let counters = server.handle.counters().server;
            assert!(counters.connections_unfinished_reclaimed_total >= newcomers.len() as u64);
            assert_eq!(counters.connections_reclaimed_total, 0);
        }
    }
}

#[test]
fn unfinished_proxy_headers_keep_no_other_out() {
    let server = Server::proxied(|settings| {
        settings.limits.connections_max = MANY;
        settings.timeouts.header = WATCHDOG;
    })
    .work(|job| job.respond("ok 0"));
    let header = b"PROXY TCP4 203.0.113.9 127.0.0.1 5 80\r\n";
    for start in [&b"PROXY TCP4 203."[..], &[&header[..], b"GET / HT"].concat()] {
        let flood = server.unfinished(2, MANY, start);
        let mut newcomer = server.client_at(3);
        newcomer.send(b"PROXY TCP4 203.0.113.7 127.0.0.1 5 80\r\n");
        Server::is_served(&mut newcomer);
        drop((flood, newcomer));
        until("all have gone", || server.handle.counters().server.connections == 0);
    }
    let counters = server.handle.counters().server;
    assert!(counters.connections_unfinished_reclaimed_total >= 2, "{counters:?}");
}

#[test]
fn unfinished_heads_of_many_clients_are_closed_after_a_moment() {
    let server = full_server(|settings| settings.limits.connections_max = 4);
    let mut upload =
        server.unfinished(9, 1, b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nab");
    let heads: Vec<_> =
        (2..5).flat_map(|last| server.unfinished(last, 1, b"GET / HTTP/1.1\r\n")).collect();
    let mut newcomer = server.client_at(20);
    Server::is_served(&mut newcomer);
    assert_eq!(server.handle.counters().server.connections_unfinished_reclaimed_total, 1);
    // The only body of its client continues.
    upload[0].send(b"cde");
    assert_eq!(upload[0].reply(false).text(), "ok 5");
    drop(heads);
}

#[test]
fn unfinished_requests_of_trusted_proxy_are_not_closed_for_others() {
    let server = full_server(|settings| {
        settings.trusted_proxies = vec!["127.0.0.2/32".parse().expect("a network")];
        settings.timeouts.header = Duration::from_secs(3);
    });
    let _flood = server.unfinished(2, MANY, b"GET / HTTP/1.1\r\n");
    let mut newcomer = server.client_at(3);
    Server::is_served(&mut newcomer);
    assert_eq!(server.handle.counters().server.connections_unfinished_reclaimed_total, 0);
}

#[test]
fn stalled_readers_of_one_client_keep_no_other_out() {
    let server = Server::with(64, |settings| {
        settings.limits.connections_max = MANY;
        settings.timeouts.write = WATCHDOG;
    })
    .work(|job| match job.field("target").as_str() {
        "/long" => {
            job.head(200, "");
            job.write(&pattern(200_000));
            After::Finish
        }
        _ => job.respond("ok 0"),
    });
    // HTTP/2 with a window of zero for the response.
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0";
    let path = b"\x00\x05:path\x05/long";
    let head = [&b"\x82\x86\x41\x01t"[..], path].concat();
    let length = u8::try_from(head.len()).expect("short");
    let request = [&preface[..], &[0, 0, length, 1, 5, 0, 0, 0, 1], &head].concat();
    let _flood = server.unfinished(2, MANY, &request);
    let mut newcomer = server.client_at(3);
    Server::is_served(&mut newcomer);
    assert!(server.handle.counters().server.connections_unfinished_reclaimed_total >= 1);
}
