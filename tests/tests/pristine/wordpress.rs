//! Debian's `wordpress`, unchanged, with a MariaDB of its own: the same database is asked by nginx +
//! php-fpm and by a server that boots it once per worker and rolls it back.
//!
//! The connection to the database is opened above the checkpoint: each worker boots by itself and
//! keeps its own, which is what `image.mode` "worker" says.

use crate::differential::{Scene, Trial, assert_rolled_back};
use samovar_testkit::MariaDb;
use samovar_testkit::copy::copy_of;
use samovar_testkit::http::Request;
use samovar_testkit::masks::{Rule, Side};
use samovar_testkit::visitor::{Visitor, form};
use samovar_testkit::{Oracle, Server};
use std::path::Path;
use tempfile::TempDir;

/// Who logs in gets a session of their own, which is in all tokens.
const RULES: &[Rule] = &[
    Rule { name: "login", before: "=ann%7C", after: ";" },
    Rule { name: "token", before: "_wpnonce=", after: "'" },
    Rule { name: "token", before: "_wpnonce=", after: "\"" },
    Rule { name: "token", before: "_comment_disabled\" value=\"", after: "\"" },
];
/// A page costs 15 ms: fewer than of other applications.
const REQUESTS: usize = 200;

/// Above the whole of `wp-load.php` stand those things too that it finds out about a visitor
/// while it loads: who is logged in, and the slashes that it adds to what was sent. So this place is
/// good for what everybody sees.
#[test]
fn wordpress() {
    let database = MariaDb::start();
    let site = site(&database);
    let theirs = Oracle::with(site.path(), SETTINGS);
    install(&theirs, site.path());
    let fresh = Side { address: theirs.address(), folder: site.path(), own: theirs.folder() };
    let everybody = everybody();
    let everybody = Trial::learn(&everybody, RULES, &fresh);
    let members = members();
    let members = Trial::learn(&members, RULES, &fresh);
    check(&site, "wp-load.php", &[&everybody]);
    // The last file before WordPress looks at the visitor: good for those who log in, too.
    check(&site, "wp-includes/pluggable-deprecated.php", &[&everybody, &members]);
}

const SETTINGS: &[(&str, &str)] = &[("memory_limit", "128M"), ("display_errors", "0")];

fn check(site: &TempDir, after: &str, trials: &[&Trial]) {
    let start = Server::at(site.path().join("index.php")).workers(2);
    let start = SETTINGS.iter().fold(start, |start, (key, value)| start.define(key, value));
    let after = site.path().join(after).display().to_string();
    let ours = start.args(["--checkpoint-after", &after]).start();
    Trial::run(trials, &ours, site.path(), REQUESTS);
    assert_rolled_back(&ours, "worker");
    ours.stop();
}

/// A site of its own: the package's code and a configuration.
fn site(database: &MariaDb) -> TempDir {
    let site = copy_of(Path::new("/usr/share/wordpress"));
    let config = CONFIG.replace("SOCKET", &database.socket().display().to_string());
    std::fs::write(site.path().join("wp-config.php"), config).expect("our own file");
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
// No visitor starts other work, and nothing is asked of the world.
define('DISABLE_WP_CRON', true);
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
// Else each server would make its own.
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

/// By the installer's own form, and by a script for what would be clicked together.
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
    let answer = oracle.client().request(&form("/wp-admin/install.php?step=2", &fields));
    assert!(answer.text().contains("WordPress has been installed"), "{}", answer.text());
    run(oracle, site, CONTENT);
}

/// Runs a script in the site.
fn run(oracle: &Oracle, site: &Path, script: &str) {
    let file = site.join("run-once.php");
    std::fs::write(&file, script).expect("our own file");
    let answer = oracle.get("/run-once.php");
    assert_eq!(answer.text(), "done", "{}", oracle.log());
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
        'post_content' => \"<!-- wp:paragraph --><p>Two $at minutes for $kind.</p><!-- /wp:paragraph -->\\n\"
            . '<!-- wp:list --><ul><li>hot</li><li>sweet</li></ul><!-- /wp:list -->'
            . '[gallery ids=\"\"]',
        'post_status' => 'publish',
        'post_author' => 1,
        'post_date' => '2020-02-0' . ($at + 1) . ' 12:00:00',
        'post_category' => [$tea],
        'tags_input' => ['hot', \"tag-$at\"],
    ]);
    wp_insert_comment(['comment_post_ID' => $id, 'comment_author' => 'Bob',
        // Without one, a server of pictures is chosen at random.
        'comment_author_email' => 'bob@example.org', 'comment_content' => \"I like $kind.\",
        'comment_date' => '2020-02-09 12:00:00', 'comment_date_gmt' => '2020-02-09 12:00:00']);
}
// As the first visitor would have it done.
flush_rewrite_rules();
wp_update_comment_count(1);
echo 'done';
";

/// What everybody sees.
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

/// What depends on who asks, and on what a query contains.
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
    let answer = visitor.send("login", form("/wp-login.php", &fields));
    assert_eq!(answer.status, 302, "{}", answer.text());
}
