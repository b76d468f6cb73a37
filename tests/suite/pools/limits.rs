//! Kernel limits of a pool's processes, separate for each pool.

use super::Sites;
use samovar_testkit::Server;

/// Prints the limits of the process and of its child, and whether a write beyond 64 MiB succeeds.
const TELLS: &str = r#"
    $limits = posix_getrlimit();
    $of = fn (string $name): string => $limits["soft $name"] . '/' . $limits["hard $name"];
    $file = tempnam(sys_get_temp_dir(), 'grows');
    $open = fopen($file, 'w');
    fseek($open, 64 << 20);
    $grows = @fwrite($open, 'x');
    unlink($file);
    [$nice, $files] = explode("\n", shell_exec('nice; ulimit -n'));
    echo json_encode([
        'files' => $of('openfiles'), 'processes' => $of('maxproc'), 'core' => $of('core'),
        'grows' => $grows, 'nice' => (int) $nice,
        'policy' => explode(' ', shell_exec('cat /proc/self/stat'))[40], 'started' => $files,
        'sapi' => PHP_SAPI,
    ]);"#;

const TABLE: &str = "
[[pool]]
name = 'api'
match = '/api/*'
root = 'FOLDER/api'
workers = 1

[pool.limits]
open_files = 300
processes = 30000
file_bytes = '64M'
core_bytes = 0
nice = 3
scheduling = 'idle'
";

fn ask(server: &Server, path: &str) -> serde_json::Value {
    let response = server.get(path);
    assert_eq!(response.status, 200, "{}", response.text());
    serde_json::from_str(&response.text()).expect("JSON")
}

#[test]
fn process_limits_apply_per_pool() {
    for model in ["", "Samovar\\checkpoint();"] {
        let sites = Sites::new();
        sites.rewrite("shop/index.php", &format!("<?php {TELLS}"));
        sites.rewrite("api/index.php", &format!("<?php {model} {TELLS}"));
        let server = sites.server(TABLE).open_files(1000, 20_000).start();
        let shop = ask(&server, "/");
        assert_eq!((&shop["files"], &shop["grows"]), (&"1000/20000".into(), &1.into()));
        let api = ask(&server, "/api/");
        assert_eq!(api["files"], "300/300");
        assert_eq!(api["started"], "300");
        assert_eq!(api["processes"], "30000/30000");
        assert_eq!(api["core"], "0/0");
        assert_eq!(api["grows"], false, "the write failed, and nobody was killed");
        let nice = |of: &serde_json::Value| of["nice"].as_i64().expect("a number");
        assert_eq!(nice(&api), (nice(&shop) + 3).min(19));
        // SCHED_OTHER and SCHED_IDLE, by their numbers.
        assert_eq!((&shop["policy"], &api["policy"]), (&"0".into(), &"5".into()));
        if !model.is_empty() {
            let status = server.status();
            let workers = status["workers"].as_array().expect("workers").iter();
            let booted = workers.filter(|worker| worker["model"] == "checkpoint").count();
            assert_eq!(booted, 1, "there is room for an image: {status}");
        }
        // A reload applies other limits.
        let config = server.folder().join("samovar.toml");
        let text = std::fs::read_to_string(&config).expect("the settings");
        std::fs::write(&config, text.replace("300\n", "400\n")).expect("our own file");
        server.reload_with(["--pool", "api"]).expect("a reload");
        assert_eq!(ask(&server, "/api/")["files"], "400/400");
        std::fs::write(&config, text.replace("300\n", "30000\n")).expect("our own file");
        let refused = server.reload_with(["--pool", "api"]).expect_err("more than the server has");
        let why = "`limits.open_files` = 30000 exceeds the server's own hard limit, 20000\nhint: \
                   raise the hard limit";
        assert!(refused.contains(why), "{refused}");
        assert_eq!(ask(&server, "/api/")["files"], "400/400");
        server.stop();
    }
}

#[test]
fn impossible_process_limit_is_refused_at_start() {
    let sites = Sites::new();
    let table = TABLE.replace("300\n", "30000\n");
    let (code, said) = sites.server(&table).open_files(1000, 20_000).refuse();
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains(
            "pool `api`: `limits.open_files` = 30000 exceeds the server's own hard limit"
        ),
        "{said}"
    );
    let (_, said) = sites.server(&TABLE.replace("'64M'", "'1M'")).refuse();
    assert!(said.contains("is less than 64M, which the image"), "{said}");
    let (_, said) = sites.server(&TABLE.replace("300\n", "100\n")).refuse();
    assert!(
        said.contains("`limits.open_files = 100` is less than 256, which PHP processes need"),
        "{said}"
    );
}
