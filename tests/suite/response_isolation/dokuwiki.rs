//! Debian's DokuWiki, unchanged: its code is loaded above the checkpoint. Its configuration and all
//! code that reads the request run below.
//!
//! No file that `doku.php` includes is a good `checkpoint_after`. Before the first of them, it has
//! read `$ACT` from `$_REQUEST['do']`. `inc/init.php` itself starts the session, derives the wiki's
//! URL from the request's headers, copies `$_GET` to `$_REQUEST` and logs the user in. All of that
//! would be fixed for a request without parameters.
//!
//! Only the libraries and `inc/load.php` with the autoloader are needed by every request and
//! independent of it. So the checkpoint follows a file of the administrator, `ahead.php`, that
//! loads these. PHP's `auto_prepend_file` runs it before the first line of `doku.php`. The
//! reference server does not use it.

use crate::applications::forms::Editor;
use crate::response_isolation::differential::{REQUESTS, Scene, Trial, assert_rolled_back};
use samovar_testkit::copy::{copy_of, copy_tree};
use samovar_testkit::http::Request;
use samovar_testkit::masks::{Rule, Side};
use samovar_testkit::visitor::{Visitor, between, form};
use samovar_testkit::{Oracle, Server, php};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};
use tempfile::TempDir;

const RULES: &[Rule] = &[
    Rule { name: "session", before: "set-cookie: DokuWiki=", after: ";" },
    // The cookie's name is a hash of the port, its value a hash of the session ID.
    Rule { name: "login", before: "set-cookie: DW", after: ";" },
    Rule { name: "token", before: "name=\"sectok\" value=\"", after: "\"" },
    Rule { name: "token", before: "sectok=", after: "\"" },
    // Also a hash of the port.
    Rule { name: "hash", before: "etag: \"", after: "\"" },
    // Derived from the time, since 2024.
    Rule { name: "token", before: "break-word\">", after: "</code>" },
    // The administrator's page ends with it, since 2026.
    Rule { name: "server API", before: "<br>PHP ", after: "<br>" },
    Rule { name: "so long", before: "title=\"<now>\">", after: " ago" },
];

const AHEAD: &str = "<?php
// As in inc/init.php.
error_reporting(E_ALL & ~E_NOTICE & ~E_DEPRECATED & ~E_STRICT);
if (!defined('DOKU_INC')) define('DOKU_INC', __DIR__ . '/');
require_once DOKU_INC . 'vendor/autoload.php';
require_once DOKU_INC . 'inc/load.php';
";

#[test]
fn dokuwiki_responses_equal_those_of_fresh_process() {
    let (our_copy, their_copy) = (wiki(), wiki());
    let ahead = our_copy.path().join("ahead.php");
    std::fs::write(&ahead, AHEAD).expect("our own file");
    let ahead = ahead.display().to_string();
    // The first lines of PHP, in ahead.php or in DokuWiki, would report deprecated functions of
    // later versions.
    let errors = php::all_but_deprecations();
    let theirs = Oracle::with(their_copy.path(), &[("error_reporting", &errors)]);
    let scenes = scenes();
    let fresh = Side { address: theirs.address(), folder: their_copy.path(), own: theirs.folder() };
    let trial = Trial::learn(&scenes, RULES, &fresh);
    let ours = Server::at(our_copy.path().join("doku.php"))
        .relinked()
        .workers(2)
        .define("auto_prepend_file", &ahead)
        .define("error_reporting", &errors)
        .args(["--checkpoint-after", &ahead])
        .start();
    // DokuWiki writes its caches of pages and of its own texts (the login page has one) without a
    // lock for readers: another visitor could read them half written.
    trial.run_in_order(&ours, our_copy.path());
    Trial::run(&[&trial], &ours, our_copy.path(), REQUESTS);
    assert_rolled_back(&ours, "shared");
    ours.stop();
}

/// Creates a wiki: the package's code, its configuration and three pages.
fn wiki() -> TempDir {
    let wiki = copy_of(Path::new("/usr/share/dokuwiki"));
    copy_tree(Path::new("/etc/dokuwiki"), &wiki.path().join("conf"));
    for folder in [
        "attic",
        "cache",
        "index",
        "locks",
        "log",
        "media_attic",
        "media_meta",
        "meta",
        "tmp",
        "media",
    ] {
        std::fs::create_dir_all(wiki.path().join("data").join(folder)).expect("our own folder");
    }
    // DokuWiki itself has a race if two visitors both need a new folder.
    for digit in "0123456789abcdef".chars() {
        std::fs::create_dir(wiki.path().join(format!("data/cache/{digit}")))
            .expect("our own folder");
    }
    for (file, text) in FILES {
        write(&wiki.path().join(file), text);
    }
    wiki
}

/// Writes a file with a fixed modification time: modification times are part of hashes and pages.
fn write(path: &Path, content: &str) {
    const LONG_AGO: Duration = Duration::from_secs(1_600_000_000);
    std::fs::create_dir_all(path.parent().expect("below the wiki")).expect("our own folder");
    std::fs::write(path, content).expect("our own file");
    let file = std::fs::File::options().write(true).open(path).expect("our own file");
    file.set_modified(UNIX_EPOCH + LONG_AGO).expect("our own file");
}

const NOTE: &str = "====== Note ======\n\nTwo minutes.\n";

const FILES: &[(&str, &str)] = &[
    // Debian 13's package has no such file, and each page warns about that.
    ("lib/scripts/jquery/versions", "JQ_VERSION=3.6.1\nJQUI_VERSION=1.13.2\n"),
    // Debian's package reads its configuration from /etc; this wiki has its own.
    ("inc/preload.php", "<?php define('DOKU_CONF', dirname(__DIR__) . '/conf/');\n"),
    (
        "conf/local.php",
        // A draft of one visitor would be shown to the next.
        "<?php\n$conf['title'] = 'Tea';\n$conf['useacl'] = 1;\n$conf['superuser'] = '@admin';\n\
         $conf['savedir'] = './data';\n$conf['updatecheck'] = 0;\n$conf['usedraft'] = 0;\n",
    ),
    // Random by default, and part of the tokens of all images.
    ("data/meta/_htcookiesalt", "salt"),
    ("data/meta/_htcookiesalt2", "more salt"),
    ("conf/acl.auth.php", "# <?php exit()?>\n*\t@ALL\t1\n*\t@user\t8\n"),
    // MD5 of the password `tea`.
    (
        "conf/users.auth.php",
        "# <?php exit()?>\nann:7239ea2b5dc943f61f3c0a0276c20974:Ann:ann@example.org:user,admin\n",
    ),
    (
        "data/pages/start.txt",
        "====== Tea ======\n\nSee [[wiki:samovar]] and [[no:such page]].\n\n\
         \x20 * **hot**\n  * //sweet//\n\n\
         ===== A table =====\n\n^ Kind ^ Minutes ^\n| green | 2 |\n| black | 4 |\n\n\
         <code php>\n<?php echo 'tea';\n</code>\n\n((A footnote.)) (c) 2 -> 3\n",
    ),
    (
        "data/pages/wiki/samovar.txt",
        "====== Samovar ======\n\nIt keeps the water hot.\n\n===== Parts =====\n\nTap and pot.\n",
    ),
    ("data/pages/wiki/note.txt", NOTE),
];

fn scenes() -> Vec<Scene> {
    let mut scenes: Vec<Scene> =
        ["/doku.php", "/doku.php?id=wiki:samovar", "/doku.php?id=no:such_page"]
            .into_iter()
            .map(Scene::get)
            .collect();
    for action in [
        "index",
        "recent",
        "backlink",
        "export_xhtml",
        "export_raw",
        "export_xhtmlbody",
        "revisions",
        "edit",
        "login",
        "register",
        "admin",
        "no_such_action",
        "media",
        "search&q=minutes",
    ] {
        scenes.push(Scene::get(&format!("/doku.php?id=start&do={action}")));
    }
    for target in [
        "/doku.php/wiki:samovar",
        "/doku.php?idx=wiki",
        "/doku.php?id=start&s[]=black",
        "/feed.php",
        "/lib/exe/opensearch.php",
        "/lib/exe/detail.php?id=start&media=no.png",
    ] {
        scenes.push(Scene::get(target));
    }
    for (name, request) in [
        ("HEAD", Request::new("HEAD", "/doku.php?id=start")),
        ("action by header", Request::get("/doku.php").header("X-DokuWiki-Do", "login")),
        ("compressed", Request::get("/doku.php?id=start").header("Accept-Encoding", "gzip")),
        ("a broken session", Request::get("/doku.php").header("Cookie", "DokuWiki=../../etc")),
        ("suggestions", form("/lib/exe/ajax.php", &[("call", "qsearch"), ("q", "samovar")])),
    ] {
        scenes.push(Scene::one(name, request));
    }
    scenes.push(Scene::new("a walk with traces", |visitor| {
        for id in ["start", "wiki:samovar", "no:such_page", "start"] {
            visitor.get(&format!("/doku.php?id={id}"));
        }
    }));
    scenes.push(Scene::new("a wrong password", |visitor| {
        log_in(visitor, "coffee");
    }));
    scenes.push(Scene::new("logged in", |visitor| {
        let token = log_in(visitor, "tea");
        for action in ["show", "profile", "admin", "subscribe", "revisions"] {
            visitor.get(&format!("/doku.php?id=wiki:samovar&do={action}"));
        }
        visitor.send("logout", Request::get(&format!("/doku.php?do=logout&sectok={token}")));
        visitor.get("/doku.php?id=start");
    }));
    scenes.push(Scene::new("an edit", |visitor| {
        let token = log_in(visitor, "tea");
        edit(visitor, &token);
    }));
    scenes
}

/// Logs in, and returns the token that the session's forms need.
fn log_in(visitor: &mut Visitor, password: &str) -> String {
    let page = visitor.get("/doku.php?id=start&do=login").text();
    let token = between(&page, "name=\"sectok\" value=\"", "\"").to_owned();
    let fields = [
        ("sectok", token.as_str()),
        ("id", "start"),
        ("do", "login"),
        ("u", "ann"),
        ("p", password),
    ];
    visitor.send("login", form("/doku.php?id=start", &fields));
    let page = visitor.get("/doku.php?id=start").text();
    between(&page, "sectok=", "\"").to_owned()
}

/// A preview, a save with a forged token, and a save without a change: other visitors see the same
/// page.
fn edit(visitor: &mut Visitor, token: &str) {
    let page = visitor.get("/doku.php?id=wiki:note&do=edit").text();
    let editor = Editor::opened(&page, "wiki:note");
    let send = |visitor: &mut Visitor, button: &str, token: &str, text: &str| {
        visitor.send(button, editor.press(button, token, text));
    };
    send(visitor, "do[preview]", token, "====== Green ======\n\nNo more — “two”.\n");
    send(visitor, "do[save]", "forged", "forged");
    send(visitor, "do[save]", token, NOTE);
    visitor.get("/doku.php?id=wiki:note");
}
