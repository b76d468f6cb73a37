//! A replay under Xdebug's step debugger: a breakpoint is hit, with the recorded input.

use super::{MODELS, builder, record, recorded, samovar};
use samovar_testkit::http::Request;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

/// Folder of PHP's extensions.
fn has_xdebug() -> bool {
    let folders = ["/usr/lib/php/20220829/xdebug.so"];
    folders.iter().any(|file| Path::new(file).exists())
}

/// A debugger's end of `DBGp`: <https://xdebug.org/docs/dbgp>.
struct Debugger {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
}

impl Debugger {
    /// Reads a packet: its length, a zero byte, XML, a zero byte.
    fn packet(&mut self) -> String {
        let mut bytes = Vec::new();
        self.reader.read_until(0, &mut bytes).expect("a length");
        bytes.clear();
        self.reader.read_until(0, &mut bytes).expect("a packet");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn command(&mut self, words: &str) -> String {
        self.stream.write_all(format!("{words}\0").as_bytes()).expect("a connection");
        self.packet()
    }
}

#[test]
fn breakpoint_is_hit_in_each_model() {
    assert!(has_xdebug(), "install php8.2-xdebug");
    for model in MODELS {
        let server = builder(model).start();
        record(&server, &["--count", "1"]);
        server.client().request(&Request::form("/time?number=4711", "a=1"));
        recorded(&server, 1);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let flag = format!("--xdebug={}", listener.local_addr().expect("an address"));
        std::thread::scope(|scope| {
            let replay =
                scope.spawn(|| samovar(&server, &["replay", "1", &flag, "--mask", "now=*"]));
            let (stream, _) = listener.accept().expect("Xdebug connects");
            let reader = BufReader::new(stream.try_clone().expect("a copy"));
            let mut debugger = Debugger { stream, reader };
            let init = debugger.packet();
            assert!(init.contains("<init"), "{model:?} {init}");
            // Line of the branch of `/time`.
            let file = server.folder().join("root/index.php");
            let line = std::fs::read_to_string(&file).expect("the script");
            let line = line.lines().position(|line| line.contains("hrtime")).expect("it") + 1;
            let set = debugger.command(&format!(
                "breakpoint_set -i 1 -t line -f file://{} -n {line}",
                file.display()
            ));
            assert!(set.contains("id="), "{model:?} {set}");
            let hit = debugger.command("run -i 2");
            assert!(hit.contains("status=\"break\""), "{model:?} {hit}");
            let number = debugger.command("eval -i 3 -- JF9HRVRbJ251bWJlciddOw==");
            // 4711 in base64, or as a number of a string.
            assert!(number.contains("NDcxMQ==") || number.contains("4711"), "{model:?} {number}");
            debugger.command("detach -i 4");
            let output = replay.join().expect("a replay");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(output.status.code(), Some(0), "{model:?} {text}");
            assert!(text.contains("an image of its own"), "{model:?} {text}");
        });
    }
}

/// A debugger may stop a replay for hours. The server does not depend on its end.
#[test]
fn stopped_replay_blocks_no_reload_and_no_visitor() {
    let server = builder(super::Model::Checkpoint).start();
    record(&server, &["--count", "1"]);
    server.get("/time");
    recorded(&server, 1);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let flag = format!("--xdebug={}", listener.local_addr().expect("an address"));
    std::thread::scope(|scope| {
        let replay = scope.spawn(|| samovar(&server, &["replay", "1", &flag, "--mask", "now=*"]));
        let (stream, _) = listener.accept().expect("Xdebug connects");
        let reader = BufReader::new(stream.try_clone().expect("a copy"));
        let mut debugger = Debugger { stream, reader };
        debugger.packet();
        let second = samovar(&server, &["replay", "1"]);
        let text = String::from_utf8_lossy(&second.stderr).into_owned();
        assert!(text.contains("another replay is running"), "{text}");
        assert_eq!(server.get("/page").status, 200);
        server.reload().expect("a reload");
        assert_eq!(server.get("/page").status, 200);
        let third = samovar(&server, &["replay", "1", "--mask", "now=*"]);
        assert_eq!(third.status.code(), Some(0), "{}", String::from_utf8_lossy(&third.stderr));
        debugger.command("detach -i 1");
        assert_eq!(replay.join().expect("a replay").status.code(), Some(0));
    });
}
