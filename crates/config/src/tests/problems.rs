//! Mistakes in the file, the environment and the flags, and how they are reported.

use super::{Folder, check_problem, problems, resolve};
use crate::schema::names;
use std::os::unix::ffi::OsStringExt;

#[test]
fn invalid_value_in_file_is_reported() {
    let check = |file: &str, shown: &str, hint: &str| {
        check_problem(file, &[], &format!("samovar.toml:{shown} is not allowed"), hint);
    };
    let workers =
        "`workers` takes `auto`, a whole number from 1 to 1024, or a range of two such as `2..64`";
    check("\n\nworkers = 0", "3: `workers = 0`", workers);
    check("workers = 1025", "1: `workers = 1025`", workers);
    check("workers = -1", "1: `workers = -1`", workers);
    check("workers = 'many'", "1: `workers = 'many'`", workers);
    check("workers = true", "1: `workers = true`", workers);
    check(
        "[limits]\nheaders_max = \"100\"",
        "2: `limits.headers_max = \"100\"`",
        "`limits.headers_max` takes a whole number from 1 to 1000, without quotes",
    );
    check(
        "limits.head_bytes_max = '65K'",
        "1: `limits.head_bytes_max = '65K'`",
        "`limits.head_bytes_max` takes a size from 4K to 64K, in bytes or with K, M or G",
    );
    let time = "takes a time from `1ms` to `24h`, such as `500ms`, `30s` or `2m`";
    check(
        "timeouts.idle = 30",
        "1: `timeouts.idle = 30`",
        &format!("`timeouts.idle` {time}, in quotes"),
    );
    check("timeouts.idle = '0'", "1: `timeouts.idle = '0'`", &format!("`timeouts.idle` {time}"));
    check(
        "timeouts.idle = '25h'",
        "1: `timeouts.idle = '25h'`",
        &format!("`timeouts.idle` {time}"),
    );
    check(
        "timeouts.response = '5x'",
        "1: `timeouts.response = '5x'`",
        &format!("`timeouts.response` {time}, or `0`: never"),
    );
    check(
        "static_files = 'yes'",
        "1: `static_files = 'yes'`",
        "`static_files` takes `true` or `false`, without quotes",
    );
    check("log_format = 'xml'", "1: `log_format = 'xml'`", "`log_format` takes `text` or `json`");
    check(
        "log_level = 3",
        "1: `log_level = 3`",
        "`log_level` takes `error`, `warn`, `info`, `debug` or `trace`, in quotes",
    );
    check(
        "php_binary = 8.2",
        "1: `php_binary = 8.2`",
        "`php_binary` takes the path of a worker binary, or a version such as `8.2`, in quotes",
    );
    check("root = ''", "1: `root = ''`", "`root` takes a folder or a `.php` file");
    check(
        "trusted_proxies = [\n'::1',\n'all']",
        "3: `trusted_proxies = 'all'`",
        "`trusted_proxies` takes an address, a network such as `10.0.0.0/8` or `::1`, or `unix:`",
    );
    check(
        "[php]\nprecision = 1.5",
        "2: `php.precision = 1.5`",
        "`php.precision` takes a string, an integer or a boolean, on one line",
    );
    check("listen = []", "1: `listen = []`", "name at least one address");
}

#[test]
fn value_in_place_of_table_is_reported() {
    check_problem(
        "limits = 5",
        &[],
        "samovar.toml:1: `limits = 5` is not allowed",
        "write a table `[limits]`",
    );
    check_problem(
        "php = '8.2'",
        &[],
        "samovar.toml:1: `php = '8.2'` is not allowed",
        "write a table `[php]`; for a single value, use `php_binary`",
    );
}

#[test]
fn unknown_key_in_file_is_reported() {
    let check = |file: &str, shown: &str, hint: &str| {
        check_problem(file, &[], &format!("samovar.toml:{shown}"), hint);
    };
    check("\nwokers = 1", "2: unknown key `wokers`", "did you mean `workers`?");
    check(
        "[limits]\nheader_max = 1",
        "2: unknown key `limits.header_max`",
        "did you mean `limits.headers_max`?",
    );
    check("[limit]\na = 1\nb = 2", "1: unknown key `limit`", "did you mean `limits`?");
    check(
        "limits = { colour = 1 }",
        "1: unknown key `limits.colour`",
        "known keys: `limits.head_bytes_max`, `limits.headers_max`, `limits.body_bytes_max`, \
         `limits.body_rate_min`, `limits.connections_max`, `limits.queue_max`, \
         `limits.requests_max`, `limits.age_max`, `limits.memory_max`, `limits.memory_ceiling`, \
         `limits.open_files`, `limits.processes`, `limits.file_bytes`, `limits.core_bytes`, \
         `limits.nice`, `limits.scheduling`, `limits.client_share`, \
         `limits.client_connections_max`, `limits.priority_paths`, `limits.retries_max`, \
         `limits.response_memory_bytes_max`, `limits.response_spill_bytes_max`, \
         `limits.buffered_bytes_max`, `limits.spooled_bytes_max`, `limits.buffer_share`, \
         `limits.growth_bytes_max`, `limits.tasks_max`, `limits.task_stack_bytes`",
    );
}

#[test]
fn file_that_is_not_toml_is_reported() {
    let hint = "put strings in quotes and the names of tables in brackets: https://toml.io";
    let text = problems("workers = 1\nroot = public\n", &[]);
    assert!(text.starts_with("samovar.toml:2: invalid TOML: "), "{text}");
    assert!(text.ends_with(&format!("\nhint: {hint}")), "{text}");
    check_problem(
        "workers = 1\nworkers = 2",
        &[],
        "samovar.toml:2: invalid TOML: duplicate key",
        hint,
    );
}

#[test]
fn invalid_value_in_environment_or_flag_is_reported() {
    check_problem(
        "",
        &["SAMOVAR_HEADERS_MAX=none"],
        "`SAMOVAR_HEADERS_MAX=none` is not allowed",
        "`SAMOVAR_HEADERS_MAX` takes a whole number from 1 to 1000",
    );
    check_problem(
        "",
        &["--idle-timeout", "30"],
        "`--idle-timeout 30` is not allowed",
        "`--idle-timeout` takes a time from `1ms` to `24h`, such as `500ms`, `30s` or `2m`",
    );
    check_problem(
        "",
        &["SAMOVAR_LISTEN=:80,8081"],
        "`SAMOVAR_LISTEN=8081` is not allowed",
        "`SAMOVAR_LISTEN` takes an address such as `127.0.0.1:8080`, `[::1]:8080`, \
         `localhost:8080` or `:8080` (all IPv4 interfaces), `https://:443`, `:80?redirect`, \
         `fcgi://127.0.0.1:9000`, `unix:/run/samovar.sock` or `fcgi-unix:/run/samovar.sock`",
    );
    check_problem(
        "",
        &["--listen", ""],
        "`--listen ''` is not allowed",
        "`--listen` takes an address such as `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080` \
         or `:8080` (all IPv4 interfaces), `https://:443`, `:80?redirect`, \
         `fcgi://127.0.0.1:9000`, `unix:/run/samovar.sock` or `fcgi-unix:/run/samovar.sock`",
    );
    check_problem(
        "",
        &["--php", "memory_limit"],
        "`--php memory_limit` is not allowed",
        "`--php` takes `key=value` of an ini directive, such as `memory_limit=256M`",
    );
    check_problem(
        "",
        &["--root", "missing"],
        "`missing` does not exist",
        "name the folder to serve, or a `.php` file in it that handles requests",
    );
    check_problem(
        "temp_dir = 'missing'",
        &[],
        "samovar.toml:1: `temp_dir = 'missing'` does not exist",
        "`temp_dir` takes a folder that exists",
    );
    check_problem(
        "",
        &["TMPDIR=/missing"],
        "the default of `temp_dir` does not exist",
        "`temp_dir` takes a folder that exists",
    );
    check_problem(
        "",
        &["--php-ini", "."],
        "`--php-ini .` is not a file",
        "`php_ini` takes a file that exists",
    );
    check_problem(
        "",
        &["--php-engine", "."],
        "`--php-engine .` is not a file",
        "`php_engine` takes the path of a libphp; `make php-engine` builds one",
    );
    check_problem(
        "",
        &["--php-engine", "lib php.so"],
        "`--php-engine lib php.so` has a space, a colon or another character that the dynamic \
         linker does not accept",
        "rename the file, or use a link with another name",
    );
    let long = "x".repeat(108);
    let sources = Folder::new().sources().flag(names::by_flag("control"), format!("/{long}"));
    let text = sources.control().unwrap_err().to_string();
    assert!(text.contains("is too long for the path of a socket: 109 bytes"), "{text}");
}

#[test]
fn unknown_variable_close_to_a_setting_is_reported() {
    check_problem(
        "",
        &["SAMOVAR_WORKER=1"],
        "unknown variable `SAMOVAR_WORKER`",
        "did you mean `SAMOVAR_WORKERS`?",
    );
    // Kubernetes sets these for a service named samovar; they are not typing errors.
    let typed = ["SAMOVAR_PORT=tcp://10.0.0.1", "SAMOVAR_SERVICE_HOST=10.0.0.1"];
    resolve("", &typed);
    let garbage = std::ffi::OsString::from_vec(vec![0xff]);
    let folder = Folder::new();
    let sources = folder.sources().envs([("SAMOVAR_WORKERS", garbage)]);
    assert_eq!(
        sources.resolve().unwrap_err().to_string(),
        "`SAMOVAR_WORKERS` is not UTF-8\n\
         hint: `SAMOVAR_WORKERS` takes `auto`, a whole number from 1 to 1024, or a range of two \
         such as `2..64`",
    );
}

#[test]
fn problems_are_reported_together_in_file_order() {
    let file = "root = 'missing'\ncolour = 1\nworkers = 0\n[limits]\nqueue_max = 1\nretry_max = 1";
    let text = problems(file, &["SAMOVAR_LOG_LEVEL=loud", "--idle-timeout", "1"]);
    let places: Vec<_> = text.lines().filter(|line| !line.starts_with("hint: ")).collect();
    assert_eq!(
        places,
        [
            "samovar.toml:1: `root = 'missing'` does not exist",
            "samovar.toml:2: unknown key `colour`",
            "samovar.toml:3: `workers = 0` is not allowed",
            "samovar.toml:5: `limits.queue_max = 1` is not allowed",
            "samovar.toml:6: unknown key `limits.retry_max`",
            "`--idle-timeout 1` is not allowed",
            "`SAMOVAR_LOG_LEVEL=loud` is not allowed",
        ]
    );
}

#[test]
fn mistake_in_file_is_reported_although_flag_overrides_it() {
    let text = problems("workers = 0", &["--workers", "2"]);
    assert!(text.starts_with("samovar.toml:1: `workers = 0` is not allowed"), "{text}");
    // A missing folder is not reported: it may be the reason for the flag.
    resolve("root = 'missing'", &["--root", "."]);
}

#[test]
fn former_name_is_reported_with_current_name() {
    check_problem(
        "workers = 2\n[[worker]]\ncommand = 'a'\n\n[[worker]]\ncommand = 'b'",
        &[],
        "samovar.toml:2: `[[worker]]` was renamed to `[[console]]`\n\
         hint: write `[[console]]`; its keys are the same\n\
         samovar.toml:5: `[[worker]]` was renamed to `[[console]]`",
        "write `[[console]]`; its keys are the same",
    );
    check_problem(
        "[worker]\ncommand = 'a'",
        &[],
        "samovar.toml:1: `[[worker]]` was renamed to `[[console]]`",
        "write `[[console]]`; its keys are the same",
    );
    check_problem(
        "[timeouts]\nanswer = '1s'",
        &[],
        "samovar.toml:2: unknown key `timeouts.answer`",
        "use `timeouts.response`, its new name",
    );
    check_problem(
        "",
        &["SAMOVAR_DEFINE=a=1"],
        "unknown variable `SAMOVAR_DEFINE`",
        "use `SAMOVAR_PHP`, its new name",
    );
    let takes = "takes `key=value` of an ini directive, such as `memory_limit=256M`";
    check_problem(
        "",
        &["--php", "8.2"],
        "`--php 8.2` is not allowed",
        &format!("`--php` {takes}; `8.2` is for `--php-binary`"),
    );
    check_problem(
        "",
        &["SAMOVAR_PHP=/usr/bin/samovar-php"],
        "`SAMOVAR_PHP=/usr/bin/samovar-php` is not allowed",
        &format!("`SAMOVAR_PHP` {takes}; `/usr/bin/samovar-php` is for `SAMOVAR_PHP_BINARY`"),
    );
    check_problem(
        "[define]\na = 1",
        &[],
        "samovar.toml:1: unknown key `define`",
        "did you mean `php`?",
    );
}
