//! The client of a replay leaves before its end: the replay ends as well. The client of a recorded
//! request has left: its replay says so.

use super::{MODELS, builder, record, recorded, replay, samovar};
use samovar_testkit::{Server, binary, eventually};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

fn spawn(server: &Server, flags: &[&str]) -> Child {
    let mut command = Command::new(binary());
    command.args(["replay", "1", "--control"]).arg(server.control()).args(flags);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary runs")
}

/// Waits until the other end has ended.
fn until_end(mut stream: TcpStream) {
    let mut bytes = Vec::new();
    // A killed process may reset the connection.
    let _ = stream.read_to_end(&mut bytes);
}

fn is_free(server: &Server) {
    eventually("a further replay", || {
        let output = samovar(server, &["replay", "2"]);
        output.status.success().then_some(())
    });
    assert_eq!(server.get("/page").status, 200);
}

#[test]
fn replay_ends_with_its_client_in_each_model() {
    for model in MODELS {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let address = listener.local_addr().expect("an address").to_string();
        let server = builder(model).start();
        record(&server, &["--count", "2"]);
        std::thread::scope(|scope| {
            scope.spawn(|| server.get(&format!("/listen?to={address}")));
            drop(listener.accept().expect("a connection"));
        });
        server.get("/count");
        recorded(&server, 2);
        let debugger = format!("--xdebug={address}");
        for flags in [&[][..], &["--trace"], &[&debugger]] {
            let mut client = spawn(&server, flags);
            let (stream, _) = listener.accept().expect("a connection");
            client.kill().expect("it runs");
            client.wait().expect("it ends");
            until_end(stream);
            is_free(&server);
        }
    }
}

/// The supervisor has forgotten a replay that a reload has ended, and its debugger still waits.
#[test]
fn replay_of_an_earlier_generation_ends_with_its_client() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let server = builder(super::Model::Checkpoint).start();
    record(&server, &["--count", "2"]);
    server.get("/time");
    server.get("/count");
    recorded(&server, 2);
    let flag = format!("--xdebug={}", listener.local_addr().expect("an address"));
    let mut client = spawn(&server, &[&flag]);
    let (stream, _) = listener.accept().expect("Xdebug connects");
    server.reload().expect("a reload");
    client.kill().expect("it runs");
    client.wait().expect("it ends");
    until_end(stream);
    is_free(&server);
}

#[test]
fn replay_of_a_request_whose_client_has_left_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("an address");
    let server = builder(super::Model::Script).start();
    record(&server, &["--count", "1"]);
    let mut visitor = TcpStream::connect(server.address()).expect("a connection");
    let head = format!("GET /listen?to={address} HTTP/1.1\r\nHost: a.example\r\n\r\n");
    visitor.write_all(head.as_bytes()).expect("a request");
    let script = listener.accept().expect("a connection");
    drop(visitor);
    let all = recorded(&server, 1);
    drop(script);
    assert_eq!((&all[0]["status"], &all[0]["has_client_left"]), (&499.into(), &true.into()));
    let (code, response) = std::thread::scope(|scope| {
        scope.spawn(|| drop(listener.accept().expect("a connection")));
        replay(&server, &["1"])
    });
    assert_eq!(code, Some(1));
    let expected = ["recorded: no response, because the client left before it"];
    assert_eq!(response["differences"], serde_json::json!(expected));
}
