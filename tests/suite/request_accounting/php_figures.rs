//! Figures of PHP's engine: messages by level, in each execution model, and opcache's memory.

use super::bench::{MODELS, ask, sample, serving, started, with_admin};
use samovar_testkit::{Server, eventually};

/// One message of each level, and two that do not count.
const MESSAGES: &str = "set_error_handler(fn () => true, E_USER_WARNING);
    trigger_error('handled', E_USER_WARNING);
    echo $undefined;
    echo @$silenced;
    trigger_error('notice', E_USER_NOTICE);
    trigger_error('old', E_USER_DEPRECATED);
    error_reporting(E_ALL & ~E_USER_NOTICE);
    trigger_error('excluded', E_USER_NOTICE);
    error_reporting(E_ALL);
    restore_error_handler();
    if ($_SERVER['QUERY_STRING'] === 'fatal') { missing(); }
    echo 'ok';";

fn messages(server: &Server) -> [u64; 4] {
    ["error", "warning", "notice", "deprecated"]
        .map(|level| sample(server, &format!("samovar_php_messages_total{{level=\"{level}\"}}")))
}

#[test]
fn php_messages_are_counted_by_level() {
    for model in MODELS {
        let start = serving(model, MESSAGES)
            .define("error_reporting", "32767")
            .define("display_errors", "0");
        let server = started(start.workers(1), model);
        assert_eq!(messages(&server), [0; 4], "{model}");
        for _ in 0..3 {
            assert_eq!(server.get("/").text(), "ok", "{model}");
        }
        eventually(model, || (messages(&server) == [0, 6, 3, 3]).then_some(()));
        assert_eq!(server.get("/?fatal").status, 500, "{model}");
        eventually(model, || (messages(&server) == [1, 8, 4, 4]).then_some(()));
        assert_eq!(server.status()["messages"]["error_total"], 1);
        // They are those of the server, not of a generation. The reload sends a request, too.
        server.reload().expect("a reload");
        assert!(messages(&server)[1] >= 8, "{model}: {:?}", messages(&server));
    }
}

#[test]
fn opcache_figures_are_those_of_php() {
    let script = "<?php
        if ($_SERVER['QUERY_STRING'] === 'reset') { opcache_reset(); }
        $status = opcache_get_status(false);
        echo json_encode(['scripts' => $status['opcache_statistics']['num_cached_scripts'],
            'used' => $status['memory_usage']['used_memory'],
            'restarts' => $status['opcache_statistics']['manual_restarts']]);";
    let start = with_admin(Server::script(script))
        .define("opcache.file_update_protection", "0")
        .define("opcache.memory_consumption", "16");
    let server = start.start();
    let php = || -> serde_json::Value {
        serde_json::from_str(&server.get("/").text()).expect("the script writes JSON")
    };
    php();
    let of = |key: &str| server.status()["opcache"][key].as_u64();
    eventually("the script is cached", || {
        let truth = php();
        (of("scripts") == truth["scripts"].as_u64() && of("used_bytes") == truth["used"].as_u64())
            .then_some(())
    });
    let sum = ["used_bytes", "free_bytes", "wasted_bytes"].map(|key| of(key).expect("a number"));
    assert_eq!(sum.iter().sum::<u64>(), 16 << 20);
    assert_eq!(sample(&server, "samovar_opcache_memory_bytes{state=\"free\"}"), sum[1]);
    assert_eq!(sample(&server, "samovar_opcache_full"), 0);
    server.get("/?reset");
    eventually("a restart", || {
        server.get("/");
        (sample(&server, "samovar_opcache_restarts_total{reason=\"manual\"}") == 1).then_some(())
    });
}

#[test]
fn opcache_without_api_for_scripts_has_figures() {
    let start = with_admin(Server::script("<?php echo 'ok';"));
    let server = start.define("opcache.restrict_api", "/nowhere").start();
    assert_eq!(server.get("/").text(), "ok");
    eventually("figures", || server.status()["opcache"]["keys_max"].as_u64().filter(|n| *n > 0));
    assert!(!server.log().contains("restrict_api"), "{}", server.log());
}

#[test]
fn disabled_opcache_has_no_figures() {
    let start = with_admin(Server::script("<?php echo 'ok';"));
    let server = start.define("opcache.enable", "0").start();
    assert_eq!(server.get("/").text(), "ok");
    assert_eq!(server.status()["opcache"], serde_json::Value::Null);
    assert!(!ask(&server, "/metrics").contains("samovar_opcache"));
}
