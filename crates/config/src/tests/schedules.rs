//! The tables `[[schedule]]`: their values, and the problems of wrong tables.

use super::{Folder, problems};
use crate::{Overlap, Work};
use samovar_cron::Times;
use std::time::Duration;

#[test]
fn schedule_tables_are_read() {
    let file = "[[schedule]]\nname = 'report'\ncron = '30 2 * * mon-fri'\n\
                timezone = 'europe/berlin'\ncommand = 'app:report \"a b\"'\noverlap = 'queue'\n\
                jitter = '30s'\ncatch_up = 'once'\ntimeout = '5m'\nstop_timeout = '3s'\n\
                [[schedule]]\nname = 'ping'\nevery = '30s'\nqueue = 'work'\n\
                payload = { a = [1, 'x'], b = { c = false } }\n\
                [[schedule]]\nname = 'tidy'\nevery = '1h'\nscript = 'bin/console'\npool = 'blog'\n\
                [[queue]]\nname = 'work'\nhandler = 'jobs/work.php'\n\
                [[pool]]\nname = 'blog'\nmatch = '/blog/*'\nroot = 'blog/public'";
    let folder = Folder::new()
        .with("samovar.toml", file)
        .with("bin/console", "")
        .with("jobs/work.php", "")
        .with("blog/public/index.php", "")
        .with("public/index.php", "");
    let settings = folder.sources().resolve().unwrap();
    let [report, ping, tidy] = &settings.schedules[..] else { panic!("{settings:?}") };
    let Times::Cron(cron, zone) = &report.times else { panic!("{report:?}") };
    assert_eq!((cron.to_string().as_str(), zone.name()), ("30 2 * * mon-fri", "Europe/Berlin"));
    let Work::Command { pool: None, command } = &report.work else { panic!("{report:?}") };
    assert_eq!(command.name, "report");
    assert_eq!(command.script, folder.path().join("bin/console"));
    assert_eq!(command.arguments, ["app:report", "a b"]);
    assert_eq!(command.stop_timeout, Duration::from_secs(3));
    assert_eq!((report.overlap, report.jitter.as_secs()), (Overlap::Queue, 30));
    assert_eq!((report.catches_up, report.timeout.as_secs()), (true, 300));
    assert_eq!(ping.times, Times::Every(Duration::from_secs(30)));
    let payload = r#"{"a":[1,"x"],"b":{"c":false}}"#.to_owned();
    assert_eq!(ping.work, Work::Push { queue: "work".into(), payload });
    assert_eq!((ping.overlap, ping.catches_up, ping.jitter), Default::default());
    let Work::Command { pool, command } = &tidy.work else { panic!("{tidy:?}") };
    assert_eq!(pool.as_deref(), Some("blog"));
    assert_eq!(command.folder, folder.path().join("blog"));
    assert_eq!(tidy.timeout, Duration::from_hours(1));
    assert!(settings.pools.iter().all(|pool| pool.settings.schedules.is_empty()));
}

#[test]
fn mistake_in_schedule_table_names_its_line() {
    let check = |file: &str, expected: &str| {
        let text = problems(file, &[]);
        assert!(text.contains(expected), "{file}: {text}");
    };
    let with = |keys: &str| format!("[[schedule]]\nname = 'a'\n{keys}");
    check("[[schedule]]\ncron = '@daily'\ncommand = 'a'", "a `[[schedule]]` has no `name`");
    check(&with("command = 'a'"), "toml:1: a `[[schedule]]` has no `cron` or `every`");
    check(&with("cron = '@daily'"), "has no `command`, `script` or `queue`");
    check(&with("cron = '@daily'\nevery = '1m'"), "has both `cron` and `every`");
    check(&with("every = '1m'\ntimezone = 'UTC'\ncommand = 'a'"), "both `timezone` and `every`");
    check(&with("every = '1m'\nqueue = 'q'\ncommand = 'a'"), "has both `queue` and `command`");
    check(&with("every = '1m'\nqueue = 'q'\ntimeout = '1m'"), "has both `queue` and `timeout`");
    check(&with("every = '1m'\ncommand = 'a'\npayload = 1"), "has a `payload`, but no `queue`");
    check(&with("every = '100ms'\ncommand = 'a'"), "toml:3: `every` of a `[[schedule]]`");
    check(&with("every = '1m'\nqueue = 'q'"), "`queue = \"q\"` of a `[[schedule]]` does not exist");
    check(&with("every = '1m'\ncommand = 'a'\npool = 'x'"), "`pool = \"x\"` of a");
    check(&with("every = '1m'\ncommand = 'a'"), "`[[schedule]]` has no console script: neither");
    for none in ["[]", "''", "' '"] {
        let reason = "toml:4: `command` of a `[[schedule]]` is not allowed: it is empty\nhint: ";
        check(&with(&format!("every = '1m'\ncommand = {none}")), reason);
    }
    check(&with("cron = '61 * * * *'\ncommand = 'a'"), "toml:3: `cron` of a `[[schedule]]`");
    check(&with("cron = '61 * * * *'\ncommand = 'a'"), "a minute is `*`, 0 to 59, a range");
    check(&with("cron = '0 0 30 2 *'\ncommand = 'a'"), "no date matches this day and month");
    check(&with("cron = '@reboot'\ncommand = 'a'"), "the names are @yearly");
    let zone = with("cron = '@daily'\ntimezone = 'Europe/Atlantis'\ncommand = 'a'");
    check(&zone, "toml:4: `timezone` of a `[[schedule]]` is not allowed: there is no such time");
    check(&with("every = '1m'\nqueue = 'q'\npayload = nan"), "toml:5: `payload`");
    check(&with("evry = '1m'"), "unknown key `schedule.evry`\nhint: did you mean `every`?");
    check("schedule = 1", "`schedule` is not an array of tables");
    let two = with("every = '1m'\nscript = 'a'").repeat(2).replace("'a'[", "'a'\n[");
    check(&two, "has the name `a`, as the one in line 1");
    check("[[pool]]\nname = 'p'\nmatch = '/p/*'\n[[pool.schedule]]\nname = 'a'", "schedule");
}
