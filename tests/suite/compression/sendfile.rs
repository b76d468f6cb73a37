//! `X-Accel-Redirect` and `X-Sendfile`.

use super::*;
use std::path::PathBuf;
use tempfile::TempDir;

const SENDER: &str = r#"<?php
header('Content-Type: application/zip');
header('Content-Disposition: attachment; filename="a.zip"');
header('Set-Cookie: seen=1');
if (isset($_GET['path'])) {
    header('X-Accel-Redirect: ' . $_GET['path']);
}
if (isset($_GET['file'])) {
    header('X-Sendfile: ' . $_GET['file']);
}
if (isset($_GET['part'])) {
    header('Content-Range: bytes 0-1/2');
}
http_response_code((int) ($_GET['status'] ?? 200));
echo str_repeat('not this ', (int) ($_GET['times'] ?? 1));
if (isset($_GET['note'])) {
    flush();
    file_put_contents($_GET['note'], 'ran on');
}
"#;

struct Files {
    folder: TempDir,
}

impl Files {
    fn new() -> Files {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        std::fs::create_dir_all(root.join("in/deep")).expect("our own folder");
        std::fs::create_dir_all(root.join("beside")).expect("our own folder");
        std::fs::write(root.join("in/a.zip"), "0123456789").expect("our own file");
        std::fs::write(root.join("in/deep/b"), "deep").expect("our own file");
        std::fs::write(root.join("beside/secret"), "secret").expect("our own file");
        let link =
            |to: &str, at: &str| std::os::unix::fs::symlink(to, root.join(at)).expect("a link");
        link("../beside/secret", "in/link");
        link("a.zip", "in/near");
        link("../beside", "in/up");
        Files { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn server(&self) -> Server {
        let config = format!("[sendfile]\n\"/protected/\" = \"{}\"\n", self.path("in").display());
        Server::script(SENDER).workers(2).config(&config).start()
    }
}

#[test]
fn sendfile_header_replaces_response_body_with_file() {
    let files = Files::new();
    let server = files.server();
    let by_file = format!("/?file={}", files.path("in/a.zip").display());
    for target in ["/?path=/protected/a.zip", "/?path=/protected/deep/../a%252ezip", &by_file] {
        let response = server.get(target);
        assert_eq!((response.status, response.text().as_str()), (200, "0123456789"), "{target}");
        assert_eq!(response.header("content-length"), Some("10"));
        assert_eq!(response.header("content-type"), Some("application/zip"));
        assert_eq!(response.header("set-cookie"), Some("seen=1"));
        assert!(response.header("content-disposition").is_some());
        assert_eq!(response.header("x-accel-redirect").or(response.header("x-sendfile")), None);
        let tag = response.header("etag").expect("a tag").to_owned();
        let with = |name: &str, value: &str| {
            server.client().request(&Request::get(target).header(name, value))
        };
        assert_eq!(with("If-None-Match", &tag).status, 304);
        assert_eq!(with("If-Match", "\"other\"").status, 412);
        let part = with("Range", "bytes=2-4");
        assert_eq!((part.status, part.text().as_str()), (206, "234"));
        assert_eq!(part.header("content-range"), Some("bytes 2-4/10"));
        assert_eq!(with("Range", "bytes=10-").status, 416);
        let head = server.client().request(&Request::new("HEAD", target));
        assert_eq!((head.header("content-length"), head.body.len()), (Some("10"), 0));
        let post = server.client().request(&Request::form(target, "a=b"));
        assert_eq!((post.status, post.text().as_str()), (200, "0123456789"));
    }
    assert_eq!(server.get("/?path=/protected/none").status, 404);
    assert_eq!(server.get("/?path=/protected/deep").status, 404);
    for status in [201, 206, 304, 404, 500] {
        let other = server.get(&format!("{by_file}&path=/protected/a.zip&status={status}"));
        assert_eq!(other.status, status);
        assert_eq!(other.text(), if status == 304 { "" } else { "not this " });
        let names = [other.header("x-accel-redirect"), other.header("x-sendfile")];
        assert_eq!(names, [None, None], "{status}: where files lie is told to clients");
    }
    let odd = "/?path=/protected/a.zip&part=1";
    let odd = server.get(odd);
    assert_eq!((odd.text().as_str(), odd.header("content-range")), ("0123456789", None));
}

/// A folder configured by a symbolic link is accepted under the link's name, under its target, and
/// under its new target after a deploy.
#[test]
fn sendfile_folder_link_is_accepted_by_both_paths() {
    let files = Files::new();
    let link = |to: &str| {
        std::os::unix::fs::symlink(to, files.path("next")).expect("a link");
        std::fs::rename(files.path("next"), files.path("current")).expect("our own link");
    };
    link("in");
    std::fs::create_dir(files.path("in2")).expect("our own folder");
    std::fs::write(files.path("in2/a.zip"), "the next one").expect("our own file");
    let folder = files.path("current").display().to_string();
    let config = format!("[sendfile]\n\"/protected/\" = \"{folder}\"\n");
    let server = Server::script(SENDER).workers(1).config(&config).start();
    let by = |name: &str| {
        let response = server.get(&format!("/?file={}", files.path(name).display()));
        (response.status, response.text())
    };
    let sent = |text: &str| (200, text.to_owned());
    assert_eq!(by("current/a.zip"), sent("0123456789"));
    assert_eq!(by("in/a.zip"), sent("0123456789"));
    assert_eq!(by("in2/a.zip").0, 403);
    assert_eq!(by("current/link").0, 403);
    assert_eq!(server.get("/?path=/protected/a.zip").text(), "0123456789");
    link("in2");
    assert_eq!(by("current/a.zip"), sent("the next one"));
    assert_eq!(by("in2/a.zip"), sent("the next one"));
    assert_eq!(server.get("/?path=/protected/a.zip").text(), "the next one");
    // A worker booted before the deploy uses the folder's old path.
    assert_eq!(by("in/a.zip"), sent("0123456789"));
    assert_eq!(by("beside/secret").0, 403);
}

#[test]
fn sendfile_outside_folder_is_forbidden() {
    let files = Files::new();
    let server = files.server();
    let beside = files.path("beside/secret").display().to_string();
    let over = format!("{}/../beside/secret", files.path("in").display());
    let targets = [
        "/?path=/protected/../beside/secret".to_owned(),
        "/?path=/protected/%252e%252e/beside/secret".to_owned(),
        "/?path=/protected/..%252fbeside/secret".to_owned(),
        "/?path=/protected/link".to_owned(),
        "/?path=/protected/near".to_owned(),
        "/?path=/protected/up/secret".to_owned(),
        "/?path=/protected/a.zip%2500".to_owned(),
        "/?path=/protected/".to_owned(),
        "/?path=/protectedx/a.zip".to_owned(),
        "/?path=/etc/passwd".to_owned(),
        format!("/?path={beside}"),
        format!("/?file={beside}"),
        format!("/?file={over}"),
        format!("/?file={}", files.path("in/link").display()),
        format!("/?file={}", files.path("in/up/secret").display()),
        "/?file=/etc/passwd".to_owned(),
        "/?file=a.zip".to_owned(),
    ];
    for target in targets {
        let response = server.get(&target);
        assert_eq!(response.status, 403, "{target}: {}", response.text());
        assert!(!response.text().contains("secret") && !response.text().contains("not this"));
    }
    server.wait_for_log("a script requested a file that must not be sent");
    assert_eq!(server.get("/?path=/protected/a.zip").status, 200);
}

/// The script's remaining output is discarded, and the script runs to its end.
#[test]
fn script_continues_after_sendfile() {
    let files = Files::new();
    let server = files.server();
    let note = files.path("note");
    let target = format!("/?path=/protected/a.zip&times=100000&note={}", note.display());
    assert_eq!(server.get(&target).text(), "0123456789");
    eventually("the script's end", || note.exists().then_some(()));
    assert_eq!(server.get("/?path=/protected/a.zip").text(), "0123456789");
}

#[test]
fn sendfile_without_folders_is_plain_header() {
    let server = Server::script(SENDER).workers(1).start();
    let response = server.get("/?path=/protected/a.zip");
    assert_eq!(response.text(), "not this ");
    assert_eq!(response.header("x-accel-redirect"), Some("/protected/a.zip"));
}

#[test]
fn invalid_sendfile_folder_is_refused_at_start() {
    for (pair, said) in [
        ("\"/p/\" = \"/no/such/folder\"", "which is not a folder"),
        ("\"/p/\" = \"relative\"", "which is not a folder"),
        ("\"p\" = \"/tmp\"", "is not allowed"),
        ("\"/p/../q/\" = \"/tmp\"", "is not allowed"),
    ] {
        let (code, log) = Server::script(SENDER).config(&format!("[sendfile]\n{pair}")).refuse();
        assert_eq!(code, Some(2), "{pair}: {log}");
        assert!(log.contains(said) && log.contains("hint: "), "{pair}: {log}");
    }
}
