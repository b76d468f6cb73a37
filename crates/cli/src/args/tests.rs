//! Tests of whole command lines: the parsed command, or the error message.

use super::*;
use samovar_config::Settings;
use samovar_config::table::SETTINGS;
use std::path::Path;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn parse_line(line: &str) -> Prepared {
    parse_from(line.split_whitespace(), Sources::new(ROOT))
}

fn serve_line(line: &str) -> Settings {
    let matches = command().get_matches_from(line.split_whitespace());
    let (_, matches) = matches.subcommand().expect("a command");
    serve::parse(matches, Sources::new(ROOT)).expect("valid settings").settings
}

fn wrong(line: &str) -> String {
    match parse_line(line) {
        Err(Early::Wrong(text)) => text,
        other => panic!("{line}: {other:?}"),
    }
}

fn help_text(line: &str) -> String {
    match parse_line(line) {
        Err(Early::Help(help)) => help.to_string(),
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn clap_definitions_are_valid() {
    command().debug_assert();
}

#[test]
fn serve_accepts_path_and_every_setting() {
    let settings = serve_line(
        "samovar serve src -l :80 --listen [::1]:81,a:82 -w 3 -d a=b,c -d x=1 --access-log - \
         --static-files false --idle-timeout 5s --php-binary 8.2",
    );
    assert_eq!(settings.root, Path::new(ROOT).join("src"));
    let listen: Vec<_> = settings.listen.iter().map(ToString::to_string).collect();
    assert_eq!(listen, ["0.0.0.0:80", "[::1]:81", "a:82"]);
    assert_eq!((settings.workers.max, settings.static_files), (3, false));
    assert_eq!(settings.php["a"], "b,c");
    assert_eq!(settings.php["x"], "1");
    assert_eq!(settings.timeouts.idle.as_secs(), 5);
}

#[test]
fn switch_without_value_ignores_next_argument() {
    let settings = serve_line("samovar serve --allow-root src");
    assert_eq!((settings.allow_root, settings.root), (true, Path::new(ROOT).join("src")));
    assert!(!serve_line("samovar serve --allow-root --allow-root=false").allow_root);
    assert!(!serve_line("samovar serve").allow_root);
}

#[test]
fn repeated_flag_uses_last_value() {
    assert_eq!(serve_line("samovar serve -w 3 --workers 4").workers.max, 4);
}

#[test]
fn status_reload_and_stop_are_parsed() {
    let check = |line: &str, expected: &str| {
        assert_eq!(format!("{:?}", parse_line(line).unwrap()), expected);
    };
    check("samovar status", "ShowStatus { json: false, control: None }");
    check(
        "samovar status --json --json --control /a.sock",
        "ShowStatus { json: true, control: Some(\"/a.sock\") }",
    );
    check(
        "samovar reload --control /a",
        "Reload { control: Some(\"/a\"), options: ReloadOptions { force: false, probe: None, \
         pool: None, release: None }, canary: None }",
    );
    check(
        "samovar reload --canary 1%,5% --by client --step 2m --root /srv/43",
        "Reload { control: None, options: ReloadOptions { force: false, probe: None, pool: None, \
         release: None }, canary: Some(CanaryQuestion { action: Start, pool: None, probe: None, \
         force: false, release: None, shares_ppm: [10000, 50000], step_s: 120, by: Client, \
         root: Some(\"/srv/43\") }) }",
    );
    check(
        "samovar reload --force --probe /x --probe /health?a=b --force",
        "Reload { control: None, options: ReloadOptions { force: true, probe: \
         Some(\"/health?a=b\"), pool: None, release: None }, canary: None }",
    );
    check(
        "samovar reload --release v1 --release 2.0-rc.1+8c1f2e0",
        "Reload { control: None, options: ReloadOptions { force: false, probe: None, pool: None, \
         release: Some(\"2.0-rc.1+8c1f2e0\") }, canary: None }",
    );
    check("samovar stop", "Stop { control: None }");
    check("samovar stop --control=/a --control=/b", "Stop { control: Some(\"/b\") }");
    let sources = Sources::new(ROOT).envs([("SAMOVAR_CONTROL", "/c.sock")]);
    let stop = parse_from(["samovar", "stop"], sources).unwrap();
    assert_eq!(format!("{stop:?}"), "Stop { control: Some(\"/c.sock\") }");
}

#[test]
fn wrong_command_line_gives_error_and_hint() {
    let check = |line: &str, message: &str, hint: &str| {
        assert_eq!(wrong(line), format!("samovar: {message}\nhint: {hint}"), "{line}");
    };
    let together = "leave out one of them";
    check(
        "samovar plan --sar a --csv b",
        "`--sar <FILE>` cannot be used with `--csv <FILE>`",
        together,
    );
    let example = "give it; the command with --help shows an example";
    check("samovar plan --weights nginx", "missing: `--fleet <FILE>`", example);
    check("samovar deploy", "missing: `<SOURCE>`", example);
    check(
        "samovar plan --fleet a --weights foo",
        "`--weights <BALANCER>` cannot be `foo`",
        "it takes `nginx`, `haproxy` or `envoy`",
    );
    check(
        "samovar plan --fleet a --weights nginx --traffic x2",
        "`--weights <BALANCER>` cannot be used with `--traffic <FACTOR>`",
        together,
    );
    let words = "another command and its words follow `--`; samovar test --help shows an example";
    check("samovar test tests", "unexpected argument `tests`", words);
    check("samovar test --testsuite a", "unknown flag `--testsuite`", words);
    let meant = format!("did you mean `--after`? Or: {words}");
    check("samovar test --filter a", "unknown flag `--filter`", &meant);
    let more = "see samovar --help and samovar serve --help";
    check("samovar serve --worker 1", "unknown flag `--worker`", "did you mean `--workers`?");
    check("samovar serve --define a=1", "unknown flag `--define`", "use the new name `--php`");
    check(
        "samovar serve --php 8.2",
        "`--php 8.2` is not allowed",
        "`--php` takes `key=value` of an ini directive, such as `memory_limit=256M`; \
         `8.2` is for `--php-binary`",
    );
    check("samovar serve --qqq", "unknown flag `--qqq`", more);
    check("samovar srve", "unknown command `srve`", "did you mean `serve`?");
    check("samovar qqq", "unknown command `qqq`", more);
    check(
        "samovar serve -w",
        "`--workers <N|MIN..MAX>` takes a value",
        "`--workers` takes `auto`, a whole number from 1 to 1024, or a range of two such as \
         `2..64`",
    );
    check(
        "samovar reload --probe health",
        "`--probe <TARGET>` cannot be `health`",
        "it takes a path with an optional query, such as `/` or `/health?full=1`",
    );
    check("samovar serve --config", "`--config <FILE>` takes a value", more);
    check(
        "samovar spy",
        "no process given",
        "pass a PID, or --all for all PHP processes of this machine",
    );
    check("samovar spy php", "`[PID]...` cannot be `php`", "it takes a process id, as shown by ps");
    check(
        "samovar spy 1 --duration 2d",
        "`--duration <TIME>` cannot be `2d`",
        "it takes a time up to 24h, such as `30s`, `500ms` or `2m`",
    );
    check(
        "samovar spy 1 --format png",
        "`--format <FORMAT>` cannot be `png`",
        "it takes svg, pprof, speedscope, collapsed or callgrind",
    );
    check("samovar stop now", "unexpected argument `now`", more);
    check(
        "samovar serve --workers none",
        "`--workers none` is not allowed",
        "`--workers` takes `auto`, a whole number from 1 to 1024, or a range of two such as \
         `2..64`",
    );
    check(
        "samovar serve nowhere",
        "`nowhere` does not exist",
        "name the folder to serve, or a `.php` file in it that handles requests",
    );
}

#[test]
fn all_problems_are_reported() {
    let text = wrong("samovar serve --workers 0 --log-level loud");
    assert_eq!(text.lines().filter(|line| line.starts_with("samovar: ")).count(), 2, "{text}");
}

#[test]
fn second_path_is_rejected() {
    assert_eq!(
        wrong("samovar serve src tests").lines().next(),
        Some("samovar: unexpected argument `tests`"),
    );
}

#[test]
fn help_names_every_setting() {
    let (short, long) = (help_text("samovar serve -h"), help_text("samovar serve --help"));
    for setting in SETTINGS {
        let flag = if setting.positional {
            format!("[{}]", setting.value)
        } else if setting.bare {
            format!("--{}[=<{}>]", setting.flag, setting.value)
        } else {
            format!("--{} <{}>", setting.flag, setting.value)
        };
        assert!(short.contains(&flag), "{flag} in -h");
        assert!(long.contains(&flag), "{flag} in --help");
        assert!(long.contains(&setting.env()), "{flag}: the variable in --help");
    }
    assert!(help_text("samovar").contains("Examples:"));
    assert!(help_text("samovar --version").starts_with("samovar "));
}
