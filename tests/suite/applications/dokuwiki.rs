//! Debian's DokuWiki: reading, logging in, editing, searching, media, style sheets and scripts.

use crate::applications::forms::Editor;
use samovar_testkit::copy::{copy_of, copy_tree};
use samovar_testkit::http::Request;
use samovar_testkit::masks::{Rule, Side};
use samovar_testkit::visitor::{PNG, Visitor, between, form, multipart};
use samovar_testkit::walk::compare_by;
use samovar_testkit::{Oracle, Server, eventually, php};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};
use tempfile::TempDir;

const RULES: &[Rule] = &[
    Rule { name: "session", before: "set-cookie: DokuWiki=", after: ";" },
    // The cookie's name is a hash of the port, its value a hash of the session ID.
    Rule { name: "login", before: "set-cookie: DW", after: ";" },
    Rule { name: "token", before: "name=\"sectok\" value=\"", after: "\"" },
    Rule { name: "token", before: "sectok=", after: "\"" },
    Rule { name: "so long", before: "title=\"<now>\">", after: " ago" },
];

/// Also a hash of the port.
const FEED: &str = "GET /feed.php";
const HASH: Rule = Rule { name: "hash", before: "etag: \"", after: "\"" };
/// For [`MADE_NOW`], the hash includes the second in which the file was made, and the header is one
/// day later.
const TOMORROW: Rule = Rule { name: "tomorrow", before: "expires: ", after: "GMT" };

fn rules_of(step: &str) -> Vec<Rule> {
    let more: &[Rule] = match step {
        FEED => &[HASH],
        _ if MADE_NOW.contains(&step) => &[HASH, TOMORROW],
        _ => &[],
    };
    [RULES, more].concat()
}

/// Steps that respond with a file made during the walk.
const MADE_NOW: &[&str] = &[
    "GET /lib/exe/fetch.php?media=pot.png",
    "picture again",
    "a part of it",
    "GET /lib/exe/css.php?t=dokuwiki",
    "GET /lib/exe/js.php?t=dokuwiki",
    "css, compressed",
];

#[test]
fn dokuwiki_pages_match_php_fpm() {
    let (our_copy, their_copy) = (wiki(), wiki());
    // Deprecation messages of later PHP versions would end up in images and scripts.
    let errors = php::all_but_deprecations();
    let ours = Server::at(our_copy.path())
        .relinked()
        .workers(2)
        .define("error_reporting", &errors)
        .start();
    let theirs = Oracle::with(their_copy.path(), &[("error_reporting", &errors)]);
    let steps = compare_by(
        walk,
        rules_of,
        &Side { address: ours.address(), folder: our_copy.path(), own: ours.folder() },
        &Side { address: theirs.address(), folder: their_copy.path(), own: theirs.folder() },
    );
    println!("dokuwiki: {steps} pages equal");
    // For these targets each server has its own page.
    for address in [ours.address(), theirs.address()] {
        let folder = Visitor::new(address).get("/lib");
        assert_eq!(folder.status, 301);
        assert!(folder.header("location").is_some_and(|to| to.ends_with("/lib/")), "{folder:?}");
        let hidden = Visitor::new(address).get("/.htaccess");
        assert_ne!(hidden.status, 200, "{}", hidden.text());
    }
    ours.stop();
}

/// Creates a wiki: the package's code, its configuration and two pages.
fn wiki() -> TempDir {
    let wiki = copy_of(Path::new("/usr/share/dokuwiki"));
    copy_tree(Path::new("/etc/dokuwiki"), &wiki.path().join("conf"));
    for (file, text) in CONFIGURATION {
        write(wiki.path(), file, text);
    }
    for folder in
        ["attic", "cache", "index", "locks", "log", "media_attic", "media_meta", "meta", "tmp"]
    {
        std::fs::create_dir_all(wiki.path().join("data").join(folder)).expect("our own folder");
    }
    for (page, text) in PAGES {
        write(wiki.path(), &format!("data/pages/{page}.txt"), text);
    }
    std::fs::create_dir_all(wiki.path().join("data/media")).expect("our own folder");
    write(wiki.path(), "data/media/cup.png", PNG);
    wiki
}

/// Writes a file with a fixed modification time: modification times are part of hashes and pages.
fn write(wiki: &Path, file: &str, content: impl AsRef<[u8]>) {
    const LONG_AGO: Duration = Duration::from_secs(1_600_000_000);
    let path = wiki.join(file);
    std::fs::create_dir_all(path.parent().expect("below the wiki")).expect("our own folder");
    std::fs::write(&path, content).expect("our own file");
    let file = std::fs::File::options().write(true).open(&path).expect("our own file");
    file.set_modified(UNIX_EPOCH + LONG_AGO).expect("our own file");
}

const CONFIGURATION: &[(&str, &str)] = &[
    // Debian's package reads its configuration from /etc; this wiki has its own.
    ("inc/preload.php", "<?php define('DOKU_CONF', dirname(__DIR__) . '/conf/');\n"),
    (
        "conf/local.php",
        "<?php\n$conf['title'] = 'Tea';\n$conf['useacl'] = 1;\n$conf['superuser'] = '@admin';\n\
         $conf['savedir'] = './data';\n$conf['updatecheck'] = 0;\n",
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
];

const PAGES: &[(&str, &str)] = &[
    (
        "start",
        "====== Tea ======\n\nSee [[wiki:samovar]] and [[no:such page]].\n\n\
         \x20 * **hot**\n  * //sweet//\n\n\
         ===== A table =====\n\n^ Kind ^ Minutes ^\n| green | 2 |\n| black | 4 |\n\n\
         <code php>\n<?php echo 'tea';\n</code>\n\n{{cup.png?20}} ((A footnote.)) (c) 2 -> 3\n",
    ),
    (
        "wiki/samovar",
        "====== Samovar ======\n\nIt keeps the water hot.\n\n===== Parts =====\n\nTap and pot.\n",
    ),
];

fn walk(visitor: &mut Visitor) {
    reading(visitor);
    let token = login(visitor);
    editing(visitor, &token);
    searching(visitor);
    media(visitor, &token);
    assets(visitor);
    let logout = format!("/doku.php?id=start&do=logout&sectok={token}");
    visitor.send("logout", Request::get(&logout));
    visitor.get("/doku.php?id=start");
}

fn reading(visitor: &mut Visitor) {
    for target in ["/", "/doku.php", "/doku.php?id=wiki:samovar", "/doku.php?id=no:such_page"] {
        visitor.get(target);
    }
    for action in ["index", "recent", "backlink", "export_xhtml", "export_raw", "export_xhtmlbody"]
    {
        visitor.get(&format!("/doku.php?id=start&do={action}"));
    }
    for action in ["revisions", "edit", "login", "register", "admin", "no_such_action"] {
        visitor.get(&format!("/doku.php?id=start&do={action}"));
    }
    visitor.get("/feed.php");
    visitor.get("/doku.php/wiki:samovar");
    visitor.send("HEAD", Request::new("HEAD", "/doku.php?id=start"));
}

/// Logs in, once with a wrong and once with the right password. Returns the token that forms of
/// this session need.
fn login(visitor: &mut Visitor) -> String {
    let page = visitor.get("/doku.php?id=start&do=login").text();
    let token = between(&page, "name=\"sectok\" value=\"", "\"").to_owned();
    let fields = |password| {
        [
            ("sectok", token.as_str()),
            ("id", "start"),
            ("do", "login"),
            ("u", "ann"),
            ("p", password),
        ]
    };
    let failed = visitor.send("wrong password", form("/doku.php?id=start", &fields("coffee")));
    assert!(failed.text().contains("Sorry, username or password"), "{}", failed.text());
    visitor.send("login", form("/doku.php?id=start", &fields("tea")));
    let page = visitor.get("/doku.php?id=start").text();
    assert!(page.contains("Logged in as"), "{page}");
    between(&page, "sectok=", "\"").to_owned()
}

fn editing(visitor: &mut Visitor, token: &str) {
    let page = visitor.get("/doku.php?id=wiki:green&do=edit").text();
    let editor = Editor::opened(&page, "wiki:green");
    let text = "====== Green ======\n\nTwo minutes — “no more”. See [[samovar]].\n";
    visitor.send("preview", editor.press("do[preview]", token, text));
    visitor.send("save with a forged token", editor.press("do[save]", "forged", text));
    let saved = visitor.send("save", editor.press("do[save]", token, text));
    assert_eq!(saved.status, 302, "{}", saved.text());
    let page = visitor.get("/doku.php?id=wiki:green").text();
    assert!(page.contains("no more"), "{page}");
    for action in ["revisions", "edit", "export_raw", "diff"] {
        visitor.get(&format!("/doku.php?id=wiki:green&do={action}"));
    }
}

fn searching(visitor: &mut Visitor) {
    for page in ["start", "wiki:samovar", "wiki:green"] {
        visitor.get(&format!("/lib/exe/taskrunner.php?id={page}"));
    }
    // The page is indexed only after the task runner has sent its response.
    eventually("the page in the index", || {
        let found = visitor.look("/doku.php?do=search&q=minutes").text();
        found.contains("id=wiki:green&amp;s[]=minutes").then_some(())
    });
    visitor.get("/doku.php?do=search&q=minutes");
    visitor.get("/doku.php?do=search&q=%C3%A4nothing");
    visitor
        .send("suggestions", form("/lib/exe/ajax.php", &[("call", "qsearch"), ("q", "samovar")]));
}

fn media(visitor: &mut Visitor, token: &str) {
    visitor.get("/lib/exe/mediamanager.php?ns=");
    visitor.get("/doku.php?id=start&do=media&ns=");
    let fields = [("sectok", token), ("ns", ""), ("do", "upload"), ("mediaid", "pot.png")];
    let file = [("upload", "pot.png", "image/png", PNG)];
    visitor.send("upload", multipart("/lib/exe/mediamanager.php?ns=", &fields, &file));
    let fetched = visitor.get("/lib/exe/fetch.php?media=pot.png");
    assert_eq!(fetched.body, PNG, "the picture comes back");
    visitor.get("/lib/exe/fetch.php?media=no.png");
    visitor.get("/lib/exe/detail.php?id=start&media=cup.png");
    let etag = fetched.header("etag").unwrap_or_default().to_owned();
    visitor.send(
        "picture again",
        Request::get("/lib/exe/fetch.php?media=pot.png").header("If-None-Match", &etag),
    );
    visitor.send(
        "a part of it",
        Request::get("/lib/exe/fetch.php?media=pot.png").header("Range", "bytes=1-3"),
    );
}

fn assets(visitor: &mut Visitor) {
    for target in
        ["/lib/exe/css.php?t=dokuwiki", "/lib/exe/js.php?t=dokuwiki", "/lib/exe/opensearch.php"]
    {
        visitor.get(target);
    }
    visitor.send(
        "css, compressed",
        Request::get("/lib/exe/css.php?t=dokuwiki").header("Accept-Encoding", "gzip"),
    );
    for target in [
        "/lib/tpl/dokuwiki/images/logo.png",
        "/lib/images/license/badge/cc-by-sa.png",
        "/lib/scripts/index.html",
    ] {
        visitor.get(target);
    }
    for target in ["/conf/local.php", "/inc/common.php", "/lib/", "/lib/no.css"] {
        visitor.get(target);
    }
}
