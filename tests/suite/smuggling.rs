//! Requests made for two interpretations: by a server in front and by this one, or in HTTP/2 and
//! HTTP/1.1.
//!
//! Each shape of the corpus is sent directly and through proxies. Without a proxy, the server must
//! reject it and close, or the application must see exactly the intended requests. With a proxy,
//! the application must see exactly the requests that the proxy forwarded.

mod corpus;
mod direct;
mod frames;
mod proxies;

use samovar_testkit::{Server, Start};
use serde_json::Value;
use std::path::PathBuf;
use tempfile::TempDir;

/// Records each request as the application sees it.
const NOTES: &str = r"<?php
$seen = [
    'id' => $_SERVER['HTTP_X_FRONT'] ?? null,
    'method' => $_SERVER['REQUEST_METHOD'],
    'uri' => $_SERVER['REQUEST_URI'],
    'host' => $_SERVER['HTTP_HOST'] ?? null,
    'headers' => count(getallheaders()),
    'body' => file_get_contents('php://input'),
];
$line = json_encode($seen,
    JSON_THROW_ON_ERROR | JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_SLASHES);
file_put_contents(__DIR__ . '/.seen', $line . PHP_EOL, FILE_APPEND | LOCK_EX);
echo 'seen';
";
/// Request sent after each shape on its connection.
const END: &str = "GET /end HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";

/// The application, and its recorded requests.
struct Noted {
    server: Server,
    root: TempDir,
}

impl Noted {
    fn start(change: impl FnOnce(Start) -> Start) -> Noted {
        let root = TempDir::with_prefix("samovar-smuggling-").expect("a folder");
        std::fs::write(root.path().join("index.php"), NOTES).expect("our own folder");
        std::fs::write(root.path().join("page.txt"), "a page").expect("our own folder");
        let server = change(Server::at(root.path()).workers(2)).start();
        Noted { server, root }
    }

    fn file(&self) -> PathBuf {
        self.root.path().join(".seen")
    }

    /// All recorded requests so far, without an incomplete last line.
    fn all(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.file()).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).expect("a note")).collect()
    }

    /// `METHOD target body` of each request recorded since the last call.
    fn take(&self) -> Vec<String> {
        let all = self.all().iter().map(shown).collect();
        let _ = std::fs::remove_file(self.file());
        all
    }
}

/// `METHOD target body`.
fn shown(note: &Value) -> String {
    let text = |key: &str| note[key].as_str().unwrap_or_default().to_owned();
    format!("{} {} {}", text("method"), text("uri"), text("body")).trim_end().to_owned()
}
