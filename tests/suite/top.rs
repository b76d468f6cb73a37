//! `samovar top` on a terminal, into a pipe, and without a server.

use samovar_testkit::SetOnDrop;
use samovar_testkit::http::Request;
use samovar_testkit::{Server, Tap, eventually};
use serde_json::Value;
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Output, Stdio};

/// Uses a millisecond of CPU time, regardless of other load.
const PAGE: &str = r"<?php
$used = function () {
    $all = getrusage();
    return 1_000_000 * ($all['ru_utime.tv_sec'] + $all['ru_stime.tv_sec'])
        + $all['ru_utime.tv_usec'] + $all['ru_stime.tv_usec'];
};
for ($end = $used() + 1_000; $used() < $end;) {}
echo 1;";

fn server(settings: &str) -> Server {
    Server::script(PAGE).workers(2).config(settings).start()
}

fn top(server: &Server, args: &[&str]) -> Output {
    let mut command = Command::new(samovar_testkit::binary());
    command.args(["top", "--control"]).arg(server.control()).args(args);
    command.output().expect("the binary runs")
}

const ROWS: usize = 30;
const COLUMNS: usize = 120;

/// A terminal of 30 rows and 120 columns, created with util-linux's `script`.
struct Terminal {
    script: Child,
    /// `None` after the input was closed.
    keys: Option<ChildStdin>,
    screen: Tap,
}

impl Terminal {
    fn open(command: &str) -> Terminal {
        let size = format!("stty rows {ROWS} cols {COLUMNS}");
        let line = format!("{size}; {command}; echo ended with $?");
        let mut script = Command::new("script")
            .args(["--quiet", "--flush", "--command", &line, "/dev/null"])
            .env("TERM", "xterm-256color")
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script is there (hint: util-linux, bsdutils)");
        let keys = script.stdin.take();
        let screen = Tap::of_child(script.stdout.take().expect("a pipe"));
        Terminal { script, keys, screen }
    }

    fn press(&mut self, keys: &str) {
        let to = self.keys.as_mut().expect("it is open");
        to.write_all(keys.as_bytes()).and_then(|()| to.flush()).expect("a terminal that reads");
    }

    fn shows(&self, text: &str) {
        eventually(&format!("`{text}` on the screen"), || {
            let written = self.screen.screen();
            (written.contains(text) || visible(&written).contains(text)).then_some(())
        });
    }

    /// Waits for the end.
    fn close(mut self) {
        self.shows("ended with 0");
        self.keys = None;
        self.script.wait().expect("a child");
    }
}

impl Drop for Terminal {
    /// Ends the program on the terminal, also after a failed test.
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

/// The words on the screen after this output, with one space between them. Only cells that have
/// changed are written: the output need not contain a text that is visible, such as a message in
/// the place of a similar one.
fn visible(written: &str) -> String {
    let mut cells = vec![[' '; COLUMNS]; ROWS];
    let (mut row, mut column) = (0, 0);
    let mut rest = written.chars();
    while let Some(c) = rest.next() {
        match c {
            '\r' => column = 0,
            '\n' => row += 1,
            '\u{1b}' if rest.as_str().starts_with('[') => {
                rest.next();
                let numbers: String =
                    rest.by_ref().take_while(|c| !('@'..='~').contains(c)).collect();
                let sequence = &written[..written.len() - rest.as_str().len()];
                match sequence.chars().next_back() {
                    Some('H') => {
                        let (at, of) = numbers.split_once(';').unwrap_or((numbers.as_str(), ""));
                        let place = |number: &str| number.parse::<usize>().unwrap_or(1).max(1) - 1;
                        (row, column) = (place(at), place(of));
                    }
                    Some('J') => cells.fill([' '; COLUMNS]),
                    _ => {}
                }
            }
            c => {
                if let Some(cell) = cells.get_mut(row).and_then(|row| row.get_mut(column)) {
                    *cell = c;
                }
                column += 1;
            }
        }
    }
    let text: Vec<String> = cells.iter().map(|row| row.iter().collect()).collect();
    text.join("\n").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn screen_shows_cells_that_were_not_written_again() {
    let first = "\u{1b}[2J\u{1b}[1;1Hno update: server is gone\u{1b}[2;5Hb";
    assert_eq!(visible(first), "no update: server is gone b");
    assert_eq!(
        visible(&format!("{first}\u{1b}[1;12Hproxy\u{1b}[31m!")),
        "no update: proxy! is gone b"
    );
}

#[test]
fn top_on_terminal_updates_until_key_press() {
    let server = server("admin = '127.0.0.1:0'\n");
    for n in 0..30 {
        assert_eq!(server.get(&format!("/shop/{n}")).status, 200);
    }
    let binary = samovar_testkit::binary();
    let mut terminal = Terminal::open(&format!(
        "{} top --every 200ms --control {}",
        binary.display(),
        server.control().display()
    ));
    terminal.shows("index.php /shop/{n}");
    terminal.shows(": healthy");
    terminal.press("\t");
    terminal.shows("GEN");
    terminal.press("3");
    terminal.shows("No waits of PHP yet");
    terminal.press("q");
    terminal.close();
    server.stop();
}

#[test]
fn top_reports_ended_server_and_restores_terminal() {
    let server = server("");
    let binary = samovar_testkit::binary();
    let mut terminal = Terminal::open(&format!(
        "{} top --every 100ms --control {}",
        binary.display(),
        server.control().display()
    ));
    terminal.shows("Requests are not measured");
    server.stop();
    terminal.shows("no update: cannot reach the server");
    terminal.press("q");
    // The alternate screen was left.
    terminal.shows("\u{1b}[?1049l");
    terminal.close();
}

#[test]
fn top_into_pipe_prints_once() {
    let server = server("admin = '127.0.0.1:0'\n");
    assert_eq!(server.get("/shop/1").status, 200);
    eventually("the request is in the figures", || {
        let said = top(&server, &["--every", "100ms"]);
        assert!(said.status.success());
        let text = String::from_utf8(said.stdout).expect("text");
        assert!(!text.contains('\u{1b}'), "{text}");
        let tables = ["ROUTE", "index.php /shop/{n}", "STATE", ": healthy"];
        tables.iter().all(|expected| text.contains(expected)).then_some(())
    });
    server.stop();
}

#[test]
fn top_json_contains_rates_of_interval() {
    let server = server("admin = '127.0.0.1:0'\n");
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let rows: Value = std::thread::scope(|scope| {
        let _over = SetOnDrop(&is_over);
        scope.spawn(|| {
            let mut client = server.client();
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                assert_eq!(client.request(&Request::get("/shop/1")).status, 200);
            }
        });
        let found = eventually("a route with a rate", || {
            let said = top(&server, &["--json", "--every", "1s"]);
            let rows: Value = serde_json::from_slice(&said.stdout).expect("JSON");
            rows["routes"][0]["requests_per_second"].as_f64().filter(|rate| *rate > 0.0)?;
            Some(rows)
        });
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        found
    });
    let number = |name: &str| rows[name].as_f64().expect("a number");
    let route = &rows["routes"][0];
    assert_eq!(route["route"], "index.php /shop/{n}");
    // Each request uses a millisecond.
    let cpu_ms = route["cpu_ms_each"].as_f64().expect("a number");
    assert!((0.5..10.0).contains(&cpu_ms), "{route}");
    assert!(number("workers_cores") > 0.0 && number("server_cores") > 0.0, "{rows}");
    assert_eq!(rows["workers"].as_array().map(Vec::len), Some(2));
    // During the load, a request may be waiting.
    let at_rest: Value =
        serde_json::from_slice(&top(&server, &["--json", "--every", "1s"]).stdout).expect("JSON");
    assert_eq!(at_rest["troubles"], serde_json::json!([]));
    server.stop();
}

#[test]
fn first_line_of_status_reports_health() {
    let server = server("");
    let mut command = Command::new(samovar_testkit::binary());
    let said = command.args(["status", "--control"]).arg(server.control()).output();
    let text = String::from_utf8(said.expect("the binary runs").stdout).expect("text");
    let first = text.lines().next().expect("a line");
    assert!(first.contains(": healthy  (pid"), "{first}");
    server.stop();
}

#[test]
fn top_without_server_reports_error() {
    let said = Command::new(samovar_testkit::binary())
        .args(["top", "--control", "/nonexistent/samovar.sock"])
        .output()
        .expect("the binary runs");
    assert_eq!(said.status.code(), Some(1));
    let text = String::from_utf8(said.stderr).expect("text");
    assert!(text.contains("cannot reach the server") && text.contains("hint: "), "{text}");
}
