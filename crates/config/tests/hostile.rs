//! Malformed files: a valid file that is cut, mixed and overwritten at random. The result is
//! settings, or problems with hints. It is never a panic, and no output line can be mistaken for
//! another one. `crates/config/fuzz` does the same, guided by coverage.

use samovar_config::Sources;

/// A file with tables and keys of each kind.
const WHOLE: &str = r#"
root = "."
listen = [
  "127.0.0.1:0", "https://127.0.0.1:0?proxy", "fcgi-unix:/run/s.sock?mode=0666", ":80?redirect",
]
workers = "2..8"
trusted_proxies = ["10.0.0.0/8", "unix:"]
log_level = "warn"
[timeouts]
request = "30s"
idle = "1h"
path = ["/a/*=10s"]
[limits]
body_bytes_max = "8M"
connections_max = 4096
[php]
memory_limit = "64M"
[tls]
certificates = []
[acme]
domains = ["www.example.com"]
[fastcgi]
queue_max = 7
[[location]]
path = ["/old/*", "*.css"]
host = "*.example.com"
fastcgi_pass = ["unix:/run/php.sock", "127.0.0.1:9000", "php.example:9000", "[::1]:9000"]
headers = { Cache-Control = "max-age=1", X-A = "" }
error_pages = { 404 = "404.html", 5xx = "sorry.html" }
[[location]]
path = "/new/*"
redirect = "https://example.com/*"
status = 308
[[console]]
command = "bin/console messenger:consume"
count = 2
[[pool]]
name = "shop"
path = "/shop/*"
workers = 1
"#;
/// Minimum number of rounds; `PROPTEST_CASES` can raise it.
const ROUNDS: usize = 1_000;

/// Marsaglia's xorshift generator: the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound.max(1) as u64).expect("it is below")
    }
}

/// Bytes with a meaning in TOML, in our notations, or for a terminal.
const ODD: [&str; 22] = [
    "\"",
    "'",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ".",
    ",",
    "#",
    "\n",
    "\\",
    "*",
    ":",
    "-1",
    "18446744073709551616",
    "\u{1b}[1m",
    "\u{7f}",
    "é",
    "%00",
];

fn spoil(numbers: &mut Numbers) -> Vec<u8> {
    let mut text = WHOLE.as_bytes().to_vec();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(text.len());
        match numbers.below(5) {
            0 => text.truncate(at),
            1 => drop(text.splice(at..at, ODD[numbers.below(ODD.len())].bytes())),
            2 => {
                let end = (at + numbers.below(12)).min(text.len());
                drop(text.drain(at..end));
            }
            3 => {
                let piece = text[at..(at + numbers.below(80)).min(text.len())].to_vec();
                let to = numbers.below(text.len());
                drop(text.splice(to..to, piece));
            }
            _ => {
                if let Some(byte) = text.get_mut(at) {
                    *byte = u8::try_from(numbers.below(256)).expect("a byte");
                }
            }
        }
        if text.is_empty() {
            break;
        }
    }
    text
}

#[test]
fn malformed_file_is_reported_with_clean_hints() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("samovar.toml");
    let mut numbers = Numbers(0x5eed);
    let mut refused = 0;
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    let rounds = asked.unwrap_or(0).max(ROUNDS);
    for round in 0..rounds {
        let text = spoil(&mut numbers);
        std::fs::write(&file, &text).expect("our own file");
        let Err(problems) = Sources::new(folder.path()).config(&file).resolve() else { continue };
        refused += 1;
        for problem in &problems {
            let said = format!("{}{}", problem.message, problem.hint);
            let is_clean = !said.contains(char::is_control) && !problem.hint.is_empty();
            assert!(is_clean, "round {round}: {problem:?}\n{}", text.escape_ascii());
        }
    }
    assert!(refused > rounds / 2, "{refused} of {rounds}");
}
