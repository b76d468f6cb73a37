//! The tables `[[console]]`: the search for the console script, and the problems of wrong tables.

use super::{Folder, problems, sources};

#[test]
fn console_tables_are_read_with_their_scripts() {
    let file = "[[console]]\ncommand = 'messenger:consume \"a b\" -v'\ncount = 3\n\
                memory_max = '64M'\n\
                [[console]]\nname = 'nightly'\nscript = 'jobs/import.php'\ntime_max = '1h'\n\
                stop_timeout = '2s'\n[[console]]\ncommand = ['queue:work', 'x y']\n\
                script = 'artisan'";
    let folder = Folder::new()
        .with("samovar.toml", file)
        .with("bin/console", "")
        .with("artisan", "")
        .with("jobs/import.php", "")
        .with("public/index.php", "");
    let settings = folder.sources().resolve().unwrap();
    let line = |at: usize| {
        let c = &settings.consoles[at];
        let script = c.script.strip_prefix(folder.path()).unwrap().display().to_string();
        (c.name.clone(), script, c.arguments.join("|"), c.count, c.memory_max >> 20)
    };
    let expected = |name: &str, script: &str, arguments: &str, count, memory| {
        (name.to_owned(), script.to_owned(), arguments.to_owned(), count, memory)
    };
    assert_eq!(line(0), expected("consume", "bin/console", "messenger:consume|a b|-v", 3, 64));
    assert_eq!(line(1), expected("nightly", "jobs/import.php", "", 1, 512));
    assert_eq!(line(2), expected("work", "artisan", "queue:work|x y", 1, 512));
    let times = settings.consoles.iter().map(|c| (c.time_max.as_secs(), c.stop_timeout.as_secs()));
    assert_eq!(times.collect::<Vec<_>>(), [(0, 10), (3600, 2), (0, 10)]);
    assert!(settings.consoles.iter().all(|c| c.folder == folder.path()));
}

#[test]
fn console_script_above_the_root_is_found() {
    let folder = Folder::new()
        .with("etc/samovar.toml", "[[console]]\ncommand = 'a:b'\n")
        .with("app/artisan", "");
    std::fs::create_dir_all(folder.path().join("app/public")).unwrap();
    let sources = sources(&folder, &["--root", "app/public"]).config("etc/samovar.toml");
    let settings = sources.resolve().unwrap();
    assert_eq!(settings.consoles[0].script, folder.path().join("app/artisan"));
}

#[test]
fn mistake_in_console_table_names_its_line() {
    let check = |file: &str, expected: &str| {
        let text = problems(file, &[]);
        assert!(text.contains(expected), "{file}: {text}");
    };
    check(
        "[[console]]\ncommand = 'a:b'",
        "toml:1: `[[console]]` has no console script: neither `bin/console`",
    );
    check(
        "[[console]]\ncommand = 'a:b'\nscript = 'x.php'",
        "toml:1: `script = \"x.php\"` does not name a file",
    );
    check("[[console]]\ncount = 2", "toml:1: `[[console]]` has no `command`");
    check(
        "[[console]]\ncommand = 'a'\ncuont = 2",
        "toml:3: unknown key `console.cuont`\nhint: did you mean `count`?",
    );
    check("[[console]]\ncommand = 'a'\ncount = 0", "toml:3: `count` of a `[[console]]`");
    check("[[console]]\ncommand = 'a'\ncount = 65", "`count` takes 1 to 64");
    check("[[console]]\ncommand = 'a \"b'", "toml:2: `command` of a");
    check("[[console]]\ncommand = ['a', 1]", "toml:2: `command` of a");
    let empty = "`command` of a `[[console]]` is not allowed: it is empty\nhint: ";
    check("[[console]]\ncommand = []", empty);
    check("[[console]]\ncommand = ''", "toml:2: `command` of a");
    check("[[console]]\ncommand = 'a'\nmemory_max = '1M'", "takes a size from 16M");
    check("[[console]]\ncommand = 'a'\nstop_timeout = 0", "takes a time up to 1h");
    check("[[console]]\ncommand = 'a'\nname = 'a b'", "toml:3: `name` of a");
    check("[[console]]\ncommand = 'a'\nname.x = 1", "toml:3: `name` of a");
    check(
        "[[console]]\ncommand = 'b:a'\n[[console]]\ncommand = 'c:a'",
        "toml:3: `[[console]]` has the name `a`, as the one in line 1",
    );
    check("[console]\ncommand = 'a'", "toml:1: `console` is not an array of tables");
    check("console = 3", "begin each command with a line `[[console]]`");
    let many = "[[console]]\ncommand = 'a'\n".repeat(33);
    check(&many, "more than 32 `[[console]]`");
}
