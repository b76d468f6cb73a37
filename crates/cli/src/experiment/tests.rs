use super::change::Changes;
use super::length;
use std::ffi::OsString;
use std::time::Duration;

fn parse(words: &[&str]) -> Result<Changes, String> {
    Changes::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
}

fn flags(changes: &Changes, flags: &[&str]) -> Vec<String> {
    let flags: Vec<OsString> = flags.iter().map(Into::into).collect();
    changes.flags(&flags).iter().map(|flag| flag.to_string_lossy().into_owned()).collect()
}

#[test]
fn words_are_settings_directives_and_the_root() {
    let changes = parse(&[
        "public/index.php",
        "opcache.jit=tracing",
        "checkpoint_after=vendor/autoload.php",
        "rollback-every=7",
        "php.memory_limit=1G",
    ])
    .expect("valid");
    assert_eq!(changes.root.as_deref(), Some("public/index.php"));
    assert_eq!(
        flags(&changes, &["--rollback-every=3", "--relink=false", "--php=a=b"]),
        [
            "--relink=false",
            "--php=a=b",
            "public/index.php",
            "--checkpoint-after=vendor/autoload.php",
            "--rollback-every=7",
            "--php=opcache.jit=tracing",
            "--php=memory_limit=1G",
        ]
    );
    assert_eq!(changes.words.len(), 4);
}

#[test]
fn other_release_and_other_file_replace_those_of_both() {
    let changes = parse(&["old", "root=../new", "config=new.toml"]).expect("valid");
    let all = flags(&changes, &["--config", "old.toml", "--relink=true"]);
    assert_eq!(all, ["--relink=true", "--config", "new.toml", "../new"]);
    assert_eq!(changes.flags_before(&[]), ["old"]);
}

#[test]
fn wrong_changes_have_a_hint() {
    for (words, expected) in [
        (&["index.php"][..], "there is no change to try"),
        (&["a", "b", "c=d"], "`b` is no change"),
        (&["workers=8"], "`workers` cannot be tried"),
        (&["listen=:80"], "`listen` cannot be tried"),
        (&["insight.store=x"], "`insight.store` cannot be tried"),
        (&["workers.preload=x"], "neither Samovar nor a loaded extension knows `workers.preload`"),
        (&["limits.body_bytes_mx=1"], "did you mean `limits.body_bytes_max`?"),
        (&["php=opcache.jit"], "takes a directive and its value"),
    ] {
        let error = parse(words).expect_err(expected);
        assert!(error.contains(expected) && error.contains("hint: "), "{error}");
    }
    for (name, expected) in [
        ("opcahce.jit", "opcache.jit"),
        ("memory_limt", "memory_limit"),
        ("checkpoint_aftr", "checkpoint_after"),
        ("opcache.preloads", "opcache.preload"),
    ] {
        let error = super::change::unknown(name);
        assert!(error.contains(&format!("did you mean `{expected}`?")), "{error}");
    }
    assert!(super::change::unknown("xyzzy.q").contains("hint: "));
}

#[test]
fn path_with_equals_sign_is_no_change() {
    let changes = parse(&["./a=b/index.php", "relink=false"]).expect("valid");
    assert_eq!(changes.root.as_deref(), Some("./a=b/index.php"));
}

#[test]
fn slow_starts_leave_short_measurements() {
    let second = Duration::from_secs(1);
    assert!(length(60 * second, Duration::ZERO, 0) < second);
    assert_eq!(length(60 * second, 4 * second, 4), 2 * second);
    assert!(length(60 * second, 100 * second, 2) < second);
    assert!(length(24 * 3600 * second, 4 * second, 1) <= super::MEASURE_MAX);
}
