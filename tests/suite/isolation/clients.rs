//! Clients of further protocols that were created above the checkpoint, with each end of a request
//! that uses them.

use crate::isolation::kinds::{Kind, kept_http, kind, start};
use samovar_testkit::Memcached;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

/// Starts a server similar to FTP: it sends a greeting, then one line for each received line, or
/// two if the line requests it.
fn ftp() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let serve = |mut client: TcpStream| -> std::io::Result<()> {
        client.write_all(b"220 hello\r\n")?;
        for line in BufReader::new(client.try_clone()?).lines() {
            let line = line?;
            let more = if line.contains("TWICE") { "200 of before\r\n" } else { "" };
            write!(client, "200 {line}\r\n{more}")?;
        }
        Ok(())
    };
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || serve(client));
        }
    });
    port
}

const FTP: Kind = kind(
    "FTP",
    "$f = ftp_connect('127.0.0.1', getenv('FTP_PORT'));",
    "echo ftp_raw($f, \"NOOP $who\")[0];",
    "ftp_raw($f, \"TWICE $who\");",
);

/// The share keeps its connections, regardless of the handle that opened them.
const SHARED: Kind = kind(
    "curl_share",
    "$h = curl_share_init(); curl_share_setopt($h, CURLSHOPT_SHARE, CURL_LOCK_DATA_CONNECT);
     $new = function ($path) use ($h) { $c = curl_init(getenv('HTTP') . $path);
         curl_setopt_array($c, [CURLOPT_SHARE => $h, CURLOPT_RETURNTRANSFER => true]); return $c; };
     $c = $new('/above'); curl_exec($c); curl_close($c); unset($c);",
    "echo trim(curl_exec($new(\"/$who\")));",
    "$c = $new(\"/$who\"); curl_setopt($c, CURLOPT_WRITEFUNCTION, fn () => 0); curl_exec($c);",
);

const MEMCACHED: [Kind; 2] = [
    kind(
        "Memcached",
        "$m = new Memcached(); $m->addServer(getenv('MEMCACHED'), 0); $m->set('above', 1);",
        "$m->set('cup', $who); echo $m->get('cup');",
        "$m->set('a', $who); $m->set('b', $who); $m->getDelayed(['a', 'b']); $m->fetch();",
    ),
    kind(
        "Memcached, binary",
        "$m = new Memcached(); $m->setOption(Memcached::OPT_BINARY_PROTOCOL, true);
         $m->addServer(getenv('MEMCACHED'), 0); $m->set('above', 1);",
        "$m->set('cup', $who); echo $m->get('cup');",
        "$m->set('a', $who); $m->set('b', $who); $m->getDelayed(['a', 'b']);",
    ),
];

#[test]
fn clients_of_further_protocols_are_isolated_after_each_end() {
    let (ftp, http) = (ftp().to_string(), format!("http://127.0.0.1:{}", kept_http()));
    start(&FTP, "worker", &["ftp"], &[("FTP_PORT", &ftp)]).run();
    start(&SHARED, "worker", &[], &[("HTTP", &http)]).run();
    let server = Memcached::start();
    let socket = server.socket().display().to_string();
    for each in MEMCACHED {
        start(&each, "worker", &["igbinary", "msgpack", "memcached"], &[("MEMCACHED", &socket)])
            .run();
    }
}
