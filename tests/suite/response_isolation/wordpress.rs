//! Debian's `wordpress`, unchanged, with a separate MariaDB. nginx + php-fpm and a server that
//! boots it once per worker and rolls it back use the same database.
//!
//! The connection to the database is opened above the checkpoint: each worker boots separately and
//! keeps its own connection, reported as `image.mode` "worker".

use crate::response_isolation::differential::{Scene, Trial, assert_rolled_back};
use samovar_testkit::MariaDb;
use samovar_testkit::copy::copy_of;
use samovar_testkit::http::{Client, Request};
use samovar_testkit::masks::{Rule, Side};
use samovar_testkit::visitor::{PNG, Visitor, form, multipart};
use samovar_testkit::{Oracle, Server, eventually, workspace};
use std::path::Path;
use tempfile::TempDir;

/// Each login creates a new session, which is part of all tokens.
const RULES: &[Rule] = &[
    Rule { name: "login", before: "=ann%7C", after: ";" },
    Rule { name: "token", before: "_wpnonce=", after: "'" },
    Rule { name: "token", before: "_wpnonce=", after: "\"" },
    Rule { name: "token", before: "_comment_disabled\" value=\"", after: "\"" },
];
/// A page takes 15 ms, so there are fewer requests than for other applications.
const REQUESTS: usize = 200;

/// The guide's must-use plugin: data that the boot has read is read again, and users are recognized
/// that the boot did not know.
#[test]
fn wordpress_responses_equal_those_of_fresh_process() {
    let database = MariaDb::start();
    let site = site(&database);
    let theirs = Oracle::with(site.path(), SETTINGS);
    install(&theirs, site.path());
    let fresh = Side { address: theirs.address(), folder: site.path(), own: theirs.folder() };
    let everybody = everybody();
    let everybody = Trial::learn(&everybody, RULES, &fresh);
    let members = members();
    let members = Trial::learn(&members, RULES, &fresh);
    let ours = start(&site);
    Trial::run(&[&everybody, &members], &ours, site.path(), REQUESTS);
    assert_rolled_back(&ours, "worker");
    attack(&theirs, &ours, site.path());
    are_named_by_template(&ours);
    ours.stop();
}

/// The plugin reports the template of each page: a post and a missing page have separate routes.
fn are_named_by_template(server: &Server) {
    for page in ["/", "/?p=1", "/?p=4711"] {
        server.get(page);
    }
    let admin = server.status()["admin"][0].as_str().expect("an address").to_owned();
    let admin = admin.parse().expect("an address");
    let all = Client::connect(admin).request(&Request::get("/api/routes")).text();
    let all: serde_json::Value = serde_json::from_str(&all).expect("JSON");
    let names = all.as_array().expect("a list").iter().filter_map(|route| route["route"].as_str());
    let names: Vec<_> = names.collect();
    let has = |template: &str| {
        names.iter().any(|name| name.starts_with("template ") && name.contains(template))
    };
    assert!(has("single") && has("404"), "{names:?}");
}

const SETTINGS: &[(&str, &str)] = &[("memory_limit", "128M"), ("display_errors", "0")];

/// Starts two workers and waits until they have booted ahead, which the plugin requests at the
/// first visit.
fn start(site: &TempDir) -> Server {
    let start = Server::at(site.path().join("index.php")).relinked().workers(2);
    let start = start.config("admin = '127.0.0.1:0'\n");
    let start = SETTINGS.iter().fold(start, |start, (key, value)| start.define(key, value));
    let ours = start.start();
    eventually("workers that have booted ahead", || {
        ours.get("/");
        let status = ours.status();
        let is_ahead = |w: &serde_json::Value| w["model"] == "checkpoint";
        status["workers"].as_array()?.iter().all(is_ahead).then_some(())
    });
    ours
}

/// Creates a site: the package's code and a configuration.
fn site(database: &MariaDb) -> TempDir {
    let site = copy_of(Path::new("/usr/share/wordpress"));
    let config = CONFIG.replace("SOCKET", &database.socket().display().to_string());
    std::fs::write(site.path().join("wp-config.php"), config).expect("our own file");
    let plugins = site.path().join("wp-content/mu-plugins");
    std::fs::create_dir_all(&plugins).expect("our own folder");
    let plugin = workspace().join("php/wordpress/samovar.php");
    std::fs::copy(plugin, plugins.join("samovar.php")).expect("the example");
    site
}

const CONFIG: &str = "<?php
define('DB_NAME', 'wordpress');
define('DB_USER', 'root');
define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:SOCKET');
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
define('WP_HOME', 'http://localhost');
define('WP_SITEURL', 'http://localhost');
// Visits start no background work, and there are no requests to the internet.
define('DISABLE_WP_CRON', true);
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
// Otherwise each server would generate its own keys.
define('AUTH_KEY', 'green');
define('SECURE_AUTH_KEY', 'black');
define('LOGGED_IN_KEY', 'white');
define('NONCE_KEY', 'oolong');
define('AUTH_SALT', 'lemon');
define('SECURE_AUTH_SALT', 'milk');
define('LOGGED_IN_SALT', 'sugar');
define('NONCE_SALT', 'honey');
$table_prefix = 'wp_';
if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
";

/// Installs the site with the installer's form, and with a script for the settings made by hand.
fn install(oracle: &Oracle, site: &Path) {
    run(oracle, site, CREATE);
    let fields = [
        ("weblog_title", "Tea"),
        ("user_name", "ann"),
        ("admin_password", "green tea"),
        ("admin_password2", "green tea"),
        ("pw_weak", "1"),
        ("admin_email", "ann@example.org"),
        ("blog_public", "0"),
    ];
    let response = oracle.client().request(&form("/wp-admin/install.php?step=2", &fields));
    assert!(response.text().contains("WordPress has been installed"), "{}", response.text());
    run(oracle, site, CONTENT);
}

/// Runs a script in the site.
fn run(oracle: &Oracle, site: &Path, script: &str) {
    let file = site.join("run-once.php");
    std::fs::write(&file, script).expect("our own file");
    let response = oracle.get("/run-once.php");
    assert_eq!(response.text(), "done", "{}", oracle.log());
    std::fs::remove_file(file).expect("our own file");
}

const CREATE: &str = "<?php
preg_match(\"/localhost:([^']+)/\", file_get_contents(__DIR__ . '/wp-config.php'), $found);
(new mysqli(null, 'root', '', '', 0, $found[1]))->query('CREATE DATABASE wordpress');
echo 'done';
";

const CONTENT: &str = "<?php
require __DIR__ . '/wp-load.php';
update_option('permalink_structure', '/%postname%/');
$tea = wp_insert_term('Tea & more', 'category')['term_id'];
foreach (['Green', 'Black', 'White', 'Oolong'] as $at => $kind) {
    $id = wp_insert_post([
        'post_title' => \"$kind tea — “the” best\",
        'post_name' => strtolower($kind),
        'post_content' => \"<!-- wp:paragraph --><p>Two $at minutes for $kind.</p>\"
            . \"<!-- /wp:paragraph -->\\n\"
            . '<!-- wp:list --><ul><li>hot</li><li>sweet</li></ul><!-- /wp:list -->'
            . '[gallery ids=\"\"]',
        'post_status' => 'publish',
        'post_author' => 1,
        'post_date' => '2020-02-0' . ($at + 1) . ' 12:00:00',
        'post_category' => [$tea],
        'tags_input' => ['hot', \"tag-$at\"],
    ]);
    wp_insert_comment(['comment_post_ID' => $id, 'comment_author' => 'Bob',
        // Without an e-mail address, a server of avatars is chosen at random.
        'comment_author_email' => 'bob@example.org', 'comment_content' => \"I like $kind.\",
        'comment_date' => '2020-02-09 12:00:00', 'comment_date_gmt' => '2020-02-09 12:00:00']);
}
// The first visit would do this.
flush_rewrite_rules();
wp_update_comment_count(1);
echo 'done';
";

/// Pages that are equal for all visitors.
fn everybody() -> Vec<Scene> {
    let mut scenes: Vec<Scene> = [
        "/",
        "/green/",
        "/black/",
        "/hello-world/",
        "/sample-page/",
        "/category/tea-more/",
        "/tag/hot/",
        "/author/ann/",
        "/2020/02/",
        "/?s=oolong",
        "/?s=nothing+like+it",
        "/?p=1",
        "/page/2/",
        "/feed/",
        "/comments/feed/",
        "/green/feed/",
        "/no/such/page/",
        "/gre",
        "/?feed=atom",
        "/wp-json/",
        "/wp-json/wp/v2/posts?per_page=2",
        "/wp-json/wp/v2/posts/77777",
        "/wp-sitemap.xml",
        "/robots.txt",
        "/wp-login.php",
        "/wp-includes/no-such-file.php",
    ]
    .into_iter()
    .map(Scene::get)
    .collect();
    for (name, request) in [
        ("HEAD", Request::new("HEAD", "/")),
        (
            "a modified feed",
            Request::get("/feed/").header("If-Modified-Since", "Mon, 01 Jan 2035 00:00:00 GMT"),
        ),
        (
            "an RPC",
            Request::post(
                "/xmlrpc.php",
                "text/xml",
                "<methodCall><methodName>demo.sayHello</methodName></methodCall>",
            ),
        ),
        (
            "a comment without text",
            form("/wp-comments-post.php", &[("comment_post_ID", "1"), ("author", "Eve")]),
        ),
    ] {
        scenes.push(Scene::one(name, request));
    }
    scenes
}

/// Pages that depend on the user, and on the query.
fn members() -> Vec<Scene> {
    vec![
        Scene::get("/?s=%22the%22+best"),
        Scene::get("/?s=a%5Cb+it%27s"),
        Scene::one(
            "a commenter",
            Request::get("/green/").header("Cookie", "comment_author_x=Bob; a=it's"),
        ),
        Scene::one(
            "a telephone",
            Request::get("/").header("User-Agent", "Mozilla/5.0 (iPhone) Mobile"),
        ),
        Scene::new("logged in", |visitor| {
            log_in(visitor);
            for target in ["/", "/green/", "/wp-json/wp/v2/users/me"] {
                visitor.get(target);
            }
        }),
    ]
}

fn log_in(visitor: &mut Visitor) {
    visitor.get("/wp-login.php");
    let fields = [("log", "ann"), ("pwd", "green tea"), ("testcookie", "1"), ("redirect_to", "/")];
    let response = visitor.send("login", form("/wp-login.php", &fields));
    assert_eq!(response.status, 302, "{}", response.text());
}

/// Checks that writes of other processes are visible, and that a visitor has exactly the permitted
/// rights.
fn attack(theirs: &Oracle, ours: &Server, site: &Path) {
    let mut ann = Visitor::new(ours.address());
    log_in(&mut ann);
    nonces(&mut ann);
    options(theirs, ours, site);
    cron(&mut ann, theirs, site);
    uploads(&mut ann, site);
    rights(&mut ann, theirs, site);
}

fn rest(target: &str, fields: &[(&str, &str)], nonce: &str) -> Request {
    let request = form(&format!("/wp-json/wp/v2/{target}"), fields);
    if nonce.is_empty() { request } else { request.header("X-WP-Nonce", nonce) }
}

fn nonce(visitor: &mut Visitor) -> String {
    visitor.look("/wp-admin/admin-ajax.php?action=rest-nonce").text()
}

/// Enough requests to reach each worker.
const TURNS: usize = 6;

/// A cookie alone, which the form of another site would also send, does not authenticate.
fn nonces(ann: &mut Visitor) {
    let good = nonce(ann);
    let bob = [
        ("username", "bob"),
        ("email", "bob@example.org"),
        ("password", "black tea"),
        ("roles", "administrator"),
    ];
    for _ in 0..TURNS {
        let without = ann.send("no nonce", rest("users", &bob, ""));
        assert_eq!(without.status, 401, "{}", without.text());
        let wrong = ann.send("wrong nonce", rest("users", &bob, "0123456789"));
        assert_eq!(wrong.status, 403, "{}", wrong.text());
        assert!(wrong.text().contains("rest_cookie_invalid_nonce"), "{}", wrong.text());
    }
    let made = ann.send("a nonce", rest("users", &bob, &good));
    assert_eq!(made.status, 201, "{}", made.text());
}

/// Options written by another process are visible to the next request, and are not overwritten.
fn options(theirs: &Oracle, ours: &Server, site: &Path) {
    let set = |name: &str, value: &str| {
        run(theirs, site, &format!("{LOAD} update_option('{name}', '{value}'); echo 'done';"));
    };
    for (name, value, target) in [
        ("blogname", "Coffee", "/"),
        ("blogname", "Tea", "/"),
        ("posts_per_page", "2", "/"),
        ("posts_per_page", "10", "/"),
        ("show_on_front", "page", "/"),
        ("show_on_front", "posts", "/"),
        ("permalink_structure", "/read/%postname%/", "/green/"),
        ("permalink_structure", "/%postname%/", "/green/"),
    ] {
        set(name, value);
        let expected = theirs.get(target);
        for _ in 0..TURNS {
            let got = ours.get(target);
            assert_eq!(
                (got.status, got.text()),
                (expected.status, expected.text()),
                "{name}={value}"
            );
        }
    }
    let title = "wp_update_post(['ID' => 1, 'post_title' => 'Another title']); echo 'done';";
    run(theirs, site, &format!("{LOAD} {title}"));
    for _ in 0..TURNS {
        assert!(ours.get("/hello-world/").text().contains("Another title"));
    }
}

const LOAD: &str = "<?php require __DIR__ . '/wp-load.php';";

/// An event added by another process is still present after a request has added one.
fn cron(ann: &mut Visitor, theirs: &Oracle, site: &Path) {
    let good = nonce(ann);
    for turn in 0..TURNS {
        let event = format!("somebody_elses_{turn}");
        let add = format!("wp_schedule_single_event(time() + 9999, '{event}'); echo 'done';");
        run(theirs, site, &format!("{LOAD} {add}"));
        let date = format!("2035-02-0{}T12:00:00", turn + 1);
        let fields = [("title", "Later"), ("status", "future"), ("date", date.as_str())];
        let later = ann.send("a post to come", rest("posts", &fields, &good));
        assert_eq!(later.status, 201, "{}", later.text());
        let look = format!(
            "{LOAD} $all = json_encode(_get_cron_array());
             $done = substr_count($all, 'publish_future_post') === {};
             echo str_contains($all, '{event}') && $done ? 'done' : $all;",
            turn + 1
        );
        run(theirs, site, &look);
    }
}

fn uploads(ann: &mut Visitor, site: &Path) {
    let good = nonce(ann);
    let files = [("file", "leaf.png", "image/png", PNG)];
    let upload = || multipart("/wp-json/wp/v2/media", &[("title", "A leaf")], &files);
    let refused = ann.send("an upload of nobody", upload());
    assert_eq!(refused.status, 401, "{}", refused.text());
    let taken = ann.send("an upload", upload().header("X-WP-Nonce", &good));
    assert_eq!(taken.status, 201, "{}", taken.text());
    let sent: serde_json::Value = serde_json::from_str(&taken.text()).expect("JSON");
    let url = sent["source_url"].as_str().expect("an address");
    let path = url.strip_prefix("http://localhost/").expect("of this site");
    assert_eq!(std::fs::read(site.join(path)).expect("it was stored"), PNG);
}

/// A removed right or session is removed immediately.
fn rights(ann: &mut Visitor, theirs: &Oracle, site: &Path) {
    let good = nonce(ann);
    let mut post = |expected: u16| {
        for _ in 0..TURNS {
            let response = ann.send("a post", rest("posts", &[("title", "x")], &good));
            assert_eq!(response.status, expected, "{}", response.text());
        }
    };
    post(201);
    run(theirs, site, &format!("{LOAD} (new WP_User(1))->set_role('subscriber'); echo 'done';"));
    post(403);
    run(theirs, site, &format!("{LOAD} (new WP_User(1))->set_role('administrator'); echo 'done';"));
    post(201);
    let end = "WP_Session_Tokens::get_instance(1)->destroy_all(); echo 'done';";
    run(theirs, site, &format!("{LOAD} {end}"));
    post(403);
}
