//! Settings of the whole server change in all pools at once, or in none.

use super::{API, BLOG, Sites, pool};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, eventually};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tables before those of pools.
const DENY: &str = "[[location]]\npath = ['/api/secret/*', '/secret/*']\ndeny = true\n";
/// Number of checks of both pools while one waits for the other.
const LOOKS: usize = 20;

fn sites() -> Sites {
    Sites::new().write("shop/secret/a.txt", "secret").write("api/api/secret/a.txt", "secret")
}

/// Rewrites the settings file with `change`.
fn change(server: &Server, change: impl Fn(String) -> String) {
    let config = server.folder().join("samovar.toml");
    let text = std::fs::read_to_string(&config).expect("the settings");
    std::fs::write(config, change(text)).expect("our own file");
}

fn deny(server: &Server) {
    // Inserted before the first table: settings there belong to no pool.
    change(server, |text| text.replacen("[[pool]]", &format!("{DENY}[[pool]]"), 1));
}

/// Statuses of the responses for the shop's and the api's file.
fn statuses(server: &Server) -> [u16; 2] {
    ["/secret/a.txt", "/api/secret/a.txt"].map(|path| server.get(path).status)
}

/// States of the workers of a pool.
fn states(server: &Server, name: &str) -> String {
    let status = server.status();
    let all = status["workers"].as_array().expect("workers").iter();
    let own = all.filter(|worker| worker["pool"] == name);
    own.filter_map(|worker| worker["state"].as_str()).collect::<Vec<_>>().join(" ")
}

/// The api boots as soon as the file `go` exists.
fn slow(go: &Path) -> String {
    format!(
        "<?php while (!file_exists('{}')) {{ usleep(5000); clearstatcache(); }}
         Samovar\\checkpoint(); echo 'slow ', $_SERVER['REQUEST_URI'];",
        go.display()
    )
}

#[test]
fn reload_applies_denied_location_to_all_pools_at_once() {
    let sites = sites();
    // Its boot takes as long as the test.
    let boot = "[pool.timeouts]\nboot = '10m'\n";
    let server = sites.server(&format!("{API}{boot}{BLOG}")).start();
    assert_eq!(statuses(&server), [200, 200]);
    let go = sites.path("go");
    sites.rewrite("api/index.php", &slow(&go));
    deny(&server);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reload = scope.spawn(|| {
            let said = server.reload();
            is_over.store(true, Ordering::Release);
            said
        });
        // The default pool has booted long ago; it waits for the other one.
        eventually("held workers", || (states(&server, "default").contains("held")).then_some(()));
        for _ in 0..LOOKS {
            assert_eq!(statuses(&server), [200, 200]);
            assert_eq!(pool(&server, "default")["generation"], 1);
        }
        assert!(!is_over.load(Ordering::Acquire));
        std::fs::write(&go, "").expect("our own file");
        // Both pools apply it between two requests; no pool applies it before the other.
        eventually("the refusal", || {
            let [shop, api] = statuses(&server);
            // The request to the api was sent later.
            assert!(shop == 200 || api == 403, "{shop} {api}");
            let [api, shop] =
                ["/api/secret/a.txt", "/secret/a.txt"].map(|path| server.get(path).status);
            assert!(api == 200 || shop == 403, "{api} {shop}");
            (shop == 403).then_some(())
        });
        let said = reload.join().expect("no panic").expect("a reload");
        assert_eq!(said.matches("generation 2 serves").count(), 3, "{said}");
    });
    assert_eq!(server.get("/api/x").text(), "slow /api/x");
    server.stop();
}

#[test]
fn failing_pool_prevents_server_settings_in_all_pools() {
    let sites = sites();
    let server = sites.server(&format!("{API}{BLOG}")).start();
    let good = std::fs::read_to_string(sites.path("api/index.php")).expect("our own file");
    let bad = "<?php throw new Exception('no'); Samovar\\serve(fn () => 'up');";
    sites.rewrite("api/index.php", bad);
    deny(&server);
    let refused = server.reload().expect_err("one of them fails");
    for words in [
        "pool `default`: the reload is cancelled in all pools: `location` has changed for all \
         pools",
        "and `api` failed",
        "hint: fix that",
        "pool `api`: the application's boot failed",
    ] {
        assert!(refused.contains(words), "{words}: {refused}");
    }
    assert_eq!(statuses(&server), [200, 200]);
    let generations =
        ["default", "api", "blog"].map(|name| pool(&server, name)["generation"].clone());
    assert_eq!(generations, [1, 1, 1]);
    assert_eq!(server.get("/api/x").text(), "api /api/x 77M");
    // A pool's own settings are applied, and the message names the settings that must wait.
    let said = server.reload_with(["--pool", "default"]).expect("a reload");
    assert!(said.contains("`location` has changed for all pools; reload all pools"), "{said}");
    assert!(said.contains("pool default: generation 2 serves"), "{said}");
    assert_eq!(statuses(&server), [200, 200]);
    // With `--force`, the failing pool is skipped: it keeps its application, with the server's new
    // settings.
    let refused = server.reload_with(["--force"]).expect_err("one of them fails");
    assert!(refused.contains("pool `api`") && !refused.contains("pool `blog`"), "{refused}");
    assert_eq!(statuses(&server), [403, 403]);
    assert_eq!(server.get("/api/x").text(), "api /api/x 77M");
    assert_eq!(pool(&server, "api")["generation"], 1);
    assert_eq!(pool(&server, "default")["generation"], 3);
    sites.rewrite("api/index.php", &good);
    server.reload().expect("all of them");
    assert_eq!(statuses(&server), [403, 403]);
    server.stop();
}

#[test]
fn reload_of_one_pool_applies_own_settings_only() {
    let sites = sites();
    let server = sites.server(&format!("{API}{BLOG}")).start();
    deny(&server);
    change(&server, |text| text.replace("77M", "88M").replace("'/api/*'", "'/v2/*'"));
    let said = server.reload_with(["--pool", "api"]).expect("a reload");
    for key in ["location", "pool"] {
        assert!(said.contains(&format!("`{key}` has changed for all pools")), "{said}");
    }
    assert_eq!(server.get("/api/x").text(), "api /api/x 88M", "limits are its own, paths are not");
    assert_eq!(statuses(&server), [200, 200]);
    let said = server.reload().expect("all of them");
    assert!(!said.contains("has changed"), "{said}");
    assert_eq!(statuses(&server), [403, 403]);
    assert_eq!(server.get("/v2/x").text(), "api /v2/x 88M");
    assert_eq!(server.get("/api/x").text(), "shop /api/x 64M");
    server.stop();
}

#[test]
fn moved_pool_root_moves_its_script_names() {
    let sites = sites().write("other/index.php", "<?php echo 'other';");
    // At first the api is in a separate folder, later it is a script in the shop's folder.
    sites.rewrite("shop/api.php", "<?php echo 'api of the shop ', ini_get('memory_limit');");
    let server = sites.server(API).start();
    let own = || server.client().request(&Request::get("/api.php")).text();
    assert_eq!(own(), "api of the shop 64M", "a script of the shop");
    let folder = sites.path("").display().to_string();
    change(&server, |text| {
        text.replace(&format!("{folder}api'"), &format!("{folder}shop/api.php'"))
    });
    // It is no longer booted ahead.
    server.reload_with(["--pool", "api", "--force"]).expect("a reload");
    assert_eq!(server.get("/api/x").text(), "api of the shop 77M");
    assert_eq!(own(), "api of the shop 77M", "it is the pool's by its other name, too");
    // A root within another pool's root is refused.
    std::fs::create_dir_all(sites.path("shop/within")).expect("our own folder");
    sites.rewrite("shop/within/index.php", "<?php echo 'within';");
    change(&server, |text| text.replace("shop/api.php'", "shop/within'"));
    let refused = server.reload_with(["--pool", "api"]).expect_err("a root within another");
    assert!(refused.contains("are nested"), "{refused}");
    assert_eq!(server.get("/api/x").text(), "api of the shop 77M");
    server.stop();
}
