//! Operators see the data of each pool separately: its boot, call graphs, profiles, console
//! workers, image and shared memory, by command, page and metric. An unknown pool name returns the
//! list of the existing ones.

use super::{Sites, samovar};
use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, Start, eventually};
use serde_json::Value;
use std::net::SocketAddr;

/// Two applications of different models. Each has its own class above the checkpoint, and a
/// function that takes time.
fn sites() -> Sites {
    let app = |name: &str, model: &str| {
        format!(
            "<?php require __DIR__ . '/{name}_part.php';
             $counter = new Samovar\\Counter('{name}_visits');
             {model}"
        )
    };
    let part = |name: &str| {
        format!(
            "<?php function {name}_work() {{ $end = hrtime(true) + 20_000_000; while \
             (hrtime(true) < $end) {{ for ($i = 0; $i < 10_000; $i++); }} }}"
        )
    };
    Sites::new()
        .write("shop/shop_part.php", &part("shop"))
        .write("blog/blog_part.php", &part("blog"))
        .write(
            "shop/index.php",
            &app(
                "shop",
                "Samovar\\checkpoint(); $counter->incr(); \
                                               shop_work(); echo 'shop';",
            ),
        )
        .write(
            "blog/index.php",
            &app(
                "blog",
                "Samovar\\serve(function () use ($counter) { \
                                               $counter->incr(); blog_work(); echo 'blog'; });",
            ),
        )
}

/// The shop, and a blog by path.
fn start(sites: &Sites, before: &str, own: &str) -> Start {
    let pool = "[[pool]]\nname = 'blog'\nmatch = '/blog/*'\nroot = 'FOLDER/blog'\nworkers = 1\n";
    sites.server(&format!("admin = '127.0.0.1:0'\n{before}{pool}{own}"))
}

fn ask(server: &Server, command: &str, flags: &[&str]) -> (Option<i32>, String) {
    let control = server.control();
    let control = control.to_str().expect("a path that we have made");
    samovar(&[&[command, "--control", control], flags].concat(), server.folder())
}

fn json(server: &Server, command: &str, flags: &[&str]) -> Option<Value> {
    let (_, text) = ask(server, command, &[flags, &["--json"]].concat());
    serde_json::from_str(&text).ok()
}

fn page(server: &Server, path: &str) -> String {
    let admin: SocketAddr = (server.status()["admin"][0].as_str())
        .and_then(|text| text.parse().ok())
        .expect("an address");
    Client::connect(admin).request(&Request::get(path)).text()
}

/// Checks that the words in `there` are present, and those in `absent` are not.
fn check(text: &str, there: &[&str], absent: &[&str]) {
    for word in there {
        assert!(text.contains(word), "{word} in {text}");
    }
    for word in absent {
        assert!(!text.contains(word), "no {word} in {text}");
    }
}

#[test]
fn boot_report_is_separate_per_pool() {
    let sites = sites();
    let server = start(&sites, "", "").start();
    let (shop, blog) = ("shop_part.php", "blog_part.php");
    for (flags, there, absent) in [
        (&[][..], shop, blog),
        (&["--pool", "default"][..], shop, blog),
        (&["--pool", "blog"][..], blog, shop),
    ] {
        let told = eventually("a boot that is told", || {
            json(&server, "boot", flags).filter(|of| of["error"].is_null())
        });
        check(&told.to_string(), &[there], &[absent]);
        let (_, text) = ask(&server, "boot", flags);
        check(&text, &["pool "], &[]);
    }
    let select = "<option value=\"blog\" selected>blog</option>";
    check(&page(&server, "/boot"), &[shop, "<select name=\"pool\">"], &[blog, select]);
    check(&page(&server, "/boot?pool=blog"), &[blog, select, "of pool"], &[shop]);
    check(&page(&server, "/image?pool=blog"), &[select, "never rolled back"], &[]);
    check(&page(&server, "/image"), &["return to it after each request"], &[]);
    for path in ["/boot", "/image", "/calls", "/profile"] {
        let unknown = page(&server, &format!("{path}?pool=nobody"));
        check(&unknown, &["Unknown pool nobody", "default, blog"], &[]);
    }
    for command in ["boot", "calls", "profile"] {
        let (code, text) = ask(&server, command, &["--pool", "nobody"]);
        let is_known = command == "calls" || text.contains("`default`, `blog`");
        assert!(code == Some(1) && is_known, "{command}: {text}");
    }
    server.stop();
}

#[test]
fn image_shared_memory_and_health_are_separate_per_pool() {
    let sites = sites();
    let server = start(&sites, "", "").start();
    assert_eq!(
        (server.get("/").text(), server.get("/blog/").text()),
        ("shop".into(), "blog".into())
    );
    let status = server.status();
    let modes = [&status["pools"][0]["booted"]["mode"], &status["pools"][1]["booted"]["mode"]];
    assert_eq!(modes, ["shared", "resident"]);
    assert_eq!(status["image"]["mode"], "shared", "the default pool's, as ever");
    let object = |of: &Value| of["shared"]["objects"][0]["name"].clone();
    assert_eq!([object(&status), object(&status["pools"][1])], ["shop_visits", "blog_visits"]);
    let (_, text) = ask(&server, "status", &[]);
    let said = [
        "pool default: image: one image",
        "pool blog: image: one boot",
        "shop_visits",
        "shared memory of pool blog",
    ];
    check(&text, &said, &["unhealthy"]);
    let samples = [
        "\nsamovar_image_findings 0\n",
        "\nsamovar_image_findings{pool=\"blog\"} 0\n",
        "\nsamovar_shared_object_bytes{kind=\"counter\",name=\"shop_visits\"}",
        "\nsamovar_shared_object_bytes{pool=\"blog\",kind=\"counter\",name=\"blog_visits\"}",
    ];
    check(&page(&server, "/metrics"), &samples, &[]);
    // The other pool's application is no longer shared. The status reports this together with the
    // pool.
    let fork = "<?php $lock = fopen(__FILE__, 'r+'); flock($lock, LOCK_EX); \
                Samovar\\checkpoint(); echo 'alone';";
    sites.rewrite("blog/index.php", fork);
    server.reload_with(["--pool", "blog", "--force"]).expect("a reload");
    let (_, text) = ask(&server, "status", &[]);
    check(&text, &["of pool blog is not shared by the workers"], &["of pool default is not"]);
    server.stop();
}

#[test]
fn profiles_of_generations_are_separate_per_pool() {
    let sites = sites();
    let server = start(&sites, "[profile]\nhertz = 200\n", "").start();
    // The other pool is a generation ahead.
    server.reload_with(["--pool", "blog"]).expect("a reload");
    let seen = |target: &str, question: &[&str], function: &str| {
        eventually(&format!("{function} is seen"), || {
            server.get(target);
            let (_, text) = ask(&server, "profile", question);
            text.contains(function).then_some(text)
        })
    };
    // A function's first sample may have no CPU time. In a comparison by CPU time, its cost before
    // the reload would be zero.
    let costs = |target: &str, question: &[&str], function: &str| {
        eventually(&format!("{function} takes CPU time"), || {
            server.get(target);
            let found = json(&server, "profile", question)?;
            let functions = found["functions"].as_array()?;
            let own = functions.iter().find(|one| one["function"] == function)?;
            (own["self"]["cpu_ns"].as_u64()? > 0).then_some(())
        });
    };
    costs("/blog/", &["--pool", "blog", "--generation", "2"], "blog_work");
    costs("/", &["--pool", "default", "--generation", "1"], "shop_work");
    let text = std::fs::read_to_string(sites.path("blog/blog_part.php")).expect("our own file");
    sites.rewrite("blog/blog_part.php", &text.replace("blog_work", "blog_later"));
    let index = std::fs::read_to_string(sites.path("blog/index.php")).expect("our own file");
    sites.rewrite("blog/index.php", &index.replace("blog_work", "blog_later"));
    server.reload_with(["--pool", "blog"]).expect("a reload");
    let compared = seen("/blog/", &["--pool", "blog", "--against", "last-reload"], "blog_later");
    check(
        &compared,
        &["all routes of pool blog", "blog_work", "generation 3", "generation 2"],
        &["shop_work"],
    );
    // The default pool has not been reloaded.
    let (code, text) = ask(&server, "profile", &["--against", "last-reload"]);
    assert_eq!(code, Some(1), "{text}");
    check(&text, &["no previous generation"], &[]);
    let (_, all) = ask(&server, "profile", &[]);
    check(&all, &["shop_work", "blog_later"], &[]);
    let (_, own) = ask(&server, "profile", &["--pool", "default"]);
    check(&own, &["shop_work"], &["blog_"]);
    let shown = page(&server, "/profile?pool=blog&than=reload");
    check(&shown, &["blog_later", "generation 3", "generation 2"], &["shop_work"]);
    server.stop();
}

#[test]
fn call_graphs_are_separate_per_pool() {
    let sites = sites();
    let server = start(&sites, "[profile]\ntrace = '1/1'\n", "").start();
    let traced = |target: &str, flags: &[&str], function: &str| {
        eventually(&format!("{function} was traced"), || {
            server.get(target);
            let (_, text) = ask(&server, "calls", flags);
            text.contains(function).then_some(text)
        })
    };
    let own = traced("/", &[], "shop_work");
    check(&own, &[], &["blog_work"]);
    let other = traced("/blog/", &["--pool", "blog"], "blog_work");
    check(&other, &[], &["shop_work"]);
    // A route named in the list of all pools is also found.
    traced("/blog/", &["--route", "blog: index.php /blog/"], "blog_work");
    let (code, text) = ask(&server, "calls", &["--pool", "nobody"]);
    assert_eq!(code, Some(1), "{text}");
    check(&text, &["there is no pool `nobody`", "`default`, `blog`"], &[]);
    check(&page(&server, "/calls"), &["shop_work", "<select name=\"pool\">"], &["blog_work"]);
    let shown = page(&server, "/calls?pool=blog");
    // After the selection of another pool in the form, no route of it is selected yet.
    let route = "route=index.php+%2F";
    let changed = page(&server, &format!("/calls?of=default&pool=blog&{route}&day=1"));
    check(&changed, &["blog_work"], &["shop_work"]);
    check(&shown, &["blog_work", "function=blog%5Fwork", "pool=blog"], &["shop_work"]);
    server.stop();
}

#[test]
fn pool_can_be_excluded_from_tracing() {
    let sites = sites();
    let own = "[pool.profile]\ntrace = '0'\n";
    let server = start(&sites, "[profile]\ntrace = '1/1'\n", own).start();
    eventually("the shop was traced", || {
        server.get("/");
        ask(&server, "calls", &[]).1.contains("shop_work").then_some(())
    });
    let (code, text) = ask(&server, "calls", &["--pool", "blog"]);
    assert_eq!(code, Some(1), "{text}");
    check(&text, &["no request of pool `blog` is traced"], &[]);
    check(&page(&server, "/calls?pool=blog"), &["no request of pool `blog` is traced"], &[]);
    server.stop();
}

/// Prints its folder, and continues until SIGTERM.
const CONSOLE: &str = "<?php
    echo 'RUNS ', __DIR__, ' in ', getcwd(), ' by ', ini_get('precision'), PHP_EOL;
    pcntl_async_signals(true); pcntl_signal(SIGTERM, function () { exit(0); });
    while (true) { usleep(10_000); }";

fn consoles(server: &Server) -> Vec<(String, String, i64)> {
    let status = server.status();
    let all = status["consoles"].as_array().expect("console workers").iter();
    let text = |of: &Value, key: &str| of[key].as_str().unwrap_or_default().to_owned();
    let mut all: Vec<_> = all
        .filter(|of| of["state"] == "running")
        .map(|of| (text(of, "pool"), text(of, "name"), of["pid"].as_i64().unwrap_or(0)))
        .collect();
    all.sort();
    all
}

fn names(of: &[(String, String, i64)]) -> Vec<(&str, &str)> {
    of.iter().map(|(pool, name, _)| (&**pool, &**name)).collect()
}

#[test]
fn console_workers_are_separate_per_pool() {
    let sites = sites().write("bin/console", CONSOLE).write("shop/bin/console", CONSOLE);
    let own = "[pool.php]\nprecision = 5\n[[pool.console]]\ncommand = 'mail'\n";
    let server =
        start(&sites, "[[console]]\ncommand = 'mail'\nscript = 'FOLDER/shop/bin/console'\n", own)
            .start();
    let both = [("blog", "mail"), ("default", "mail")];
    let before =
        eventually("both run", || Some(consoles(&server)).filter(|all| names(all) == both));
    let folder = sites.path("").canonicalize().expect("our own folder");
    let said = format!("RUNS {0}/bin in {0} by 5", folder.display());
    eventually("it says so", || {
        let log = server.log();
        let line = log.lines().find(|line| line.contains(&said))?;
        line.contains("pool=\"blog\"").then_some(())
    });
    let (_, text) = ask(&server, "status", &[]);
    check(&text, &["CONSOLE", "POOL"], &[]);
    check(&page(&server, "/consoles"), &["<td>blog</td>", "<td>default</td>"], &[]);
    // A reload of one pool restarts its own workers.
    server.reload_with(["--pool", "blog"]).expect("a reload");
    let after = eventually("another runs", || {
        Some(consoles(&server)).filter(|all| names(all) == both && all[0] != before[0])
    });
    assert_eq!(after[1], before[1], "the other pool's goes on");
    // Their name is changed for that pool only.
    let config = server.folder().join("samovar.toml");
    let text = std::fs::read_to_string(&config).expect("the settings");
    std::fs::write(
        &config,
        text.replace("[[pool.console]]\ncommand = 'mail'", "[[pool.console]]\ncommand = 'post'"),
    )
    .expect("our own file");
    server.reload_with(["--pool", "blog"]).expect("a reload");
    let renamed = [("blog", "post"), ("default", "mail")];
    eventually("it is called otherwise", || {
        Some(consoles(&server)).filter(|all| names(all) == renamed)
    });
    server.stop();
}

#[test]
fn upgrade_starts_console_workers_of_pools_after_old_ones_left() {
    let lock = "<?php $mine = fopen(__DIR__ . '/lock', 'c');
        if (!flock($mine, LOCK_EX | LOCK_NB)) { echo 'TWICE', PHP_EOL; }
        pcntl_async_signals(true); pcntl_signal(SIGTERM, function () { usleep(300_000); exit(0); });
        while (true) { usleep(10_000); }";
    let sites = sites().write("bin/console", lock);
    let own = "[[pool.console]]\ncommand = 'mail'\n";
    let server = start(&sites, "", own).start();
    let run = || Some(consoles(&server)).filter(|all| names(all) == [("blog", "mail")]);
    let before = eventually("it runs", run);
    server.upgrade([]).expect("an upgrade");
    eventually("the next one runs", || run().filter(|all| *all != before));
    check(&server.log(), &[], &["TWICE"]);
    server.stop();
}
