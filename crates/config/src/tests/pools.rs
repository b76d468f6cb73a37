//! `[[pool]]`: inherited settings, a pool's own settings, and refused keys.

use super::{Folder, check_problem, problems, sources};
use crate::schema::pool::{OF_APPLICATION, OWN};
use crate::schema::setting::{Kind, OnReload, Setting};
use crate::schema::settings::{Pool, Settings};
use crate::schema::table::SETTINGS;
use crate::{ConsoleCommand, pools_need_restart};
use std::path::Path;
use std::time::Duration;

/// Makes a folder that contains the applications `shop` and `api`.
fn folder(file: &str) -> Folder {
    let folder = Folder::new().with("samovar.toml", file);
    let files = ["shop/index.php", "api/index.php", "api/admin.php", "shop/api.php"];
    files.into_iter().fold(folder, |folder, file| folder.with(file, ""))
}

fn resolve(file: &str, typed: &[&str]) -> Settings {
    sources(&folder(file), typed).resolve().unwrap()
}

fn pool(file: &str, typed: &[&str]) -> Pool {
    resolve(file, typed).pools.remove(0)
}

fn check_refused(file: &str, message: &str, hint: &str) {
    let said = sources(&folder(file), &[]).resolve().unwrap_err().to_string();
    assert_eq!(said, format!("{message}\nhint: {hint}"), "{file}");
}

#[test]
fn every_key_of_a_pool_is_in_the_table() {
    for key in OWN.iter().chain(&OF_APPLICATION) {
        assert!(SETTINGS.iter().any(|setting| setting.key == *key), "{key}");
    }
    assert!(OF_APPLICATION.iter().all(|key| OWN.contains(key)));
}

/// Sample values for each kind of setting, except those with a list of words.
const VALUES: &[&str] = &[
    "true",
    "false",
    "7",
    "3..9",
    "77M",
    "13s",
    "13",
    "x",
    "x=y",
    "/x",
    "/x=y",
    "/x/=y",
    "/a/*",
    "/a/*=3s",
    "a/b=/c",
    "*.x",
    "8.4",
    "127.0.0.1:81",
    "x.example",
    "http://x.example",
    "https://x.example/",
    "10.0.0.0/8",
    "x@x.example",
    "max-age=300",
    "0.5",
    "connection",
    "0123456789abcdefABCDEF0123456789",
    "text/plain",
    "gzip",
    "7%",
    "999",
    "9K",
    "2M",
    "apcu",
    "1/7",
    "/x/=/tmp/",
    "redis://x.example",
    "coarse",
];

/// Returns the settings with another value of one key.
fn with_another(base: &Settings, setting: &Setting) -> Option<Settings> {
    let words: &[&str] = if let Kind::Word { words, .. } = setting.kind { words } else { VALUES };
    let another = |word: &&str| {
        let mut other = base.clone();
        setting.kind.set(&mut other, word, "/".as_ref())?;
        (other != *base).then_some(other)
    };
    words.iter().find_map(another)
}

#[test]
fn with_own_takes_only_settings_of_a_pool() {
    let base = resolve("root = 'shop'", &[]);
    let (known, unknown): (Vec<_>, Vec<_>) = SETTINGS
        .iter()
        .map(|s| (s, with_another(&base, s)))
        .partition(|(_, other)| other.is_some());
    let unknown: Vec<_> = unknown.iter().map(|(setting, _)| setting.key).collect();
    assert!(unknown.is_empty(), "another value is needed for these: {unknown:?}");
    for (setting, other) in known.into_iter().filter_map(|(s, other)| Some((s, other?))) {
        let (is_own, key) = (OWN.contains(&setting.key), setting.key);
        assert_eq!(base.with_own(&other), *if is_own { &other } else { &base }, "{key}");
        let changed = base.changed_for_all(&other);
        let is_applied = matches!(setting.on_reload, OnReload::Applied);
        assert_eq!(!changed.is_empty(), is_applied && !is_own, "{key}: {changed:?}");
    }
    let tables = "root = 'shop'\n[[location]]\npath = '/x'\ndeny = true\n[[pool]]\nname = 'api'\n\
                  match = '/a'\n";
    let one = resolve(tables, &[]);
    let same = resolve(&format!("\n{tables}workers = 7\n"), &[]);
    assert_eq!(
        one.changed_for_all(&same),
        Vec::<String>::new(),
        "lines, and what is the pool's own"
    );
    for (from, to, key) in
        [("deny = true", "scripts = false", "location"), ("'/a'", "'/b'", "pool")]
    {
        assert_eq!(one.changed_for_all(&resolve(&tables.replace(from, to), &[])), [key]);
    }
}

#[test]
fn settings_without_pool_tables_have_no_pools() {
    assert!(resolve("root = 'shop'", &[]).pools.is_empty());
}

#[test]
fn pool_inherits_settings_that_it_does_not_set() {
    let file = "root = 'shop'\nworkers = 3\ncheckpoint_after = 'api.php'\nwarmup = ['/a']\n\
                [php]\nmemory_limit = '64M'\nprecision = 5\n[limits]\nqueue_max = 100\n\
                [timeouts]\nresponse = '7s'\n\
                [[pool]]\nname = 'api'\nmatch = '/api/*'\nhost = ['A.example', '*.b.example']\n\
                root = 'api/admin.php'\nworkers = { min = 1, max = 2, idle_max = '3s' }\n\
                [pool.php]\nmemory_limit = '128M'\n[pool.limits]\nqueue_max = 20\n\
                [pool.timeouts]\nrequest = '1m'\n\
                [[pool]]\nname = 'export'\nmatch = ['/export/*', '/dump']\n";
    let folder = folder(file);
    let mut settings = sources(&folder, &[]).resolve().unwrap();
    assert_eq!(settings.workers.max, 3, "the default pool is as it was");
    let export = settings.pools.remove(1);
    let api = settings.pools.remove(0);
    assert_eq!((api.name.as_str(), api.line), ("api", 12));
    assert_eq!(api.paths, ["/api/*"]);
    assert_eq!(api.hosts, ["a.example", "*.b.example"]);
    let own = &api.settings;
    assert_eq!(own.root, folder.path().join("api"));
    assert_eq!(own.front_controller, Some(folder.path().join("api/admin.php")));
    assert_eq!((own.workers.min, own.workers.max), (1, 2));
    assert_eq!(own.workers.idle_max, Duration::from_secs(3));
    assert_eq!(own.php["memory_limit"], "128M");
    assert_eq!(own.php["precision"], "5");
    assert_eq!(own.limits.queue_max, 20);
    assert_eq!(own.timeouts.response, Duration::from_secs(7));
    assert_eq!(own.timeouts.request, Duration::from_mins(1));
    assert_eq!((own.checkpoint_after.clone(), own.warmup.len()), (None, 0), "another application");
    assert_eq!(export.paths, ["/export/*", "/dump"]);
    assert_eq!(export.settings.root, folder.path().join("shop"));
    assert_eq!(export.settings.checkpoint_after, Some(folder.path().join("shop/api.php")));
    assert_eq!(export.settings.workers.max, 3);
    assert!(export.settings.pools.is_empty() && export.settings.consoles.is_empty());
}

#[test]
fn pool_setting_overrides_flag_and_environment() {
    let file = "root = 'shop'\n[limits]\npriority_paths = ['/a']\n\
                [[pool]]\nname = 'api'\nmatch = '/api/*'\nworkers = 2\n\
                [pool.limits]\npriority_paths = ['/b']\n";
    let pool = pool(file, &["--workers", "9", "SAMOVAR_PRIORITY_PATHS=/c"]);
    assert_eq!(pool.settings.workers.max, 2);
    assert_eq!(pool.settings.limits.priority_paths, ["/b"]);
}

#[test]
fn console_workers_of_a_pool_are_separate() {
    let console = |name: &str| format!("[[pool.console]]\ncommand = '{name}'\n");
    let file = format!(
        "root = 'shop'\n[[console]]\ncommand = 'mail'\n\
         [[pool]]\nname = 'api'\nmatch = '/api/*'\nroot = 'app/public'\n{}{}\
         [[pool]]\nname = 'export'\nmatch = '/export/*'\n{}",
        console("mail"),
        console("post"),
        console("csv")
    );
    let folder = folder(&file)
        .with("bin/console", "")
        .with("app/artisan", "")
        .with("app/public/index.php", "");
    let settings = sources(&folder, &[]).resolve().unwrap();
    let of = |settings: &Settings| -> Vec<(String, String, String)> {
        let inside = |path: &Path| path.strip_prefix(folder.path()).unwrap().display().to_string();
        let told = |c: &ConsoleCommand| (c.name.clone(), inside(&c.script), inside(&c.folder));
        settings.consoles.iter().map(told).collect()
    };
    let is = |name: &str, script: &str, folder: &str| {
        (name.to_owned(), script.to_owned(), folder.to_owned())
    };
    assert_eq!(of(&settings), [is("mail", "bin/console", "")]);
    // This pool has another application than the one next to the file: its own console script, and
    // its own folder.
    let api = [is("mail", "app/artisan", "app"), is("post", "app/artisan", "app")];
    assert_eq!(of(&settings.pools[0].settings), api);
    assert_eq!(of(&settings.pools[1].settings), [is("csv", "bin/console", "")]);
    // A reload of one pool applies that pool's commands.
    assert_eq!(of(&settings.with_own(&settings.pools[0].settings)), api);
    std::fs::remove_file(folder.path().join("app/artisan")).unwrap();
    let problems = sources(&folder, &[]).resolve().unwrap_err().to_string();
    assert!(problems.contains("`[[pool.console]]` has no console script"), "{problems}");
}

#[test]
fn invalid_pool_is_reported() {
    let api = "[[pool]]\nname = 'api'\nmatch = '/api/*'\n";
    for (file, message, hint) in [
        (
            "pool = 3",
            "samovar.toml:1: `pool` is not an array of tables",
            "begin each of them with a line `[[pool]]`",
        ),
        (
            "[[pool]]\nmatch = '/a'",
            "samovar.toml:1: a `[[pool]]` has no `name`",
            "add one, such as `name = \"api\"`",
        ),
        (
            "[[pool]]\nname = 'a'",
            "samovar.toml:1: a `[[pool]]` has no `match` or `host`",
            "add one, such as `match = \"/api/*\"` or `host = \"api.example.com\"`",
        ),
        (
            "[[pool]]\nname = 'default'\nmatch = '/a'",
            "samovar.toml:2: `name` of a `[[pool]]` is not allowed: this name is reserved for the \
             default pool",
            "`name` takes up to 32 letters, digits, `-`, `_`, `.`; not `default`",
        ),
        (
            "[[pool]]\nname = 'a'\nmatch = 'api/*'",
            "samovar.toml:3: `match` of a `[[pool]]` is not allowed: a path begins with `/`, a \
             file name has none; regular expressions are not supported",
            "`match` takes a path such as `/api/*`, or an array of them; `*` matches any text, \
             including `/`",
        ),
        (
            "[[pool]]\nname = 'a'\nmatch = '*.php'",
            "samovar.toml:3: `match` of a `[[pool]]` is not allowed: it does not begin with `/`",
            "`match` takes a path such as `/api/*`, or an array of them; `*` matches any text, \
             including `/`",
        ),
        (
            "[[pool]]\nname = 'a'\nhost = 'a.example:80'",
            "samovar.toml:3: `host` of a `[[pool]]` is not allowed: it must be a name without \
             scheme and port",
            "`host` takes a name without port such as `example.com` or `*.example.com`, or an \
             array of them",
        ),
        (
            &format!("{api}listen = '127.0.0.1:1'"),
            "samovar.toml:4: `listen` is not allowed in a `[[pool]]`: it applies to the whole \
             server",
            "move it outside the tables `[[pool]]`",
        ),
        (
            &format!("{api}[pool.insight]\nenabled = false"),
            "samovar.toml:5: `insight.enabled` is not allowed in a `[[pool]]`: it applies to the \
             whole server",
            "move it outside the tables `[[pool]]`",
        ),
        (
            &format!("{api}user = 'www-data'"),
            "samovar.toml:4: `user` is not allowed in a `[[pool]]`: all pools run as the user of \
             the server",
            "run a separate server for an application that needs another user",
        ),
        (
            &format!("{api}deny_files = ['*.x']"),
            "samovar.toml:4: `deny_files` is not allowed in a `[[pool]]`: the rules for files are \
             the same in all pools",
            "move it outside the tables `[[pool]]`",
        ),
        (
            &format!("{api}[[pool.location]]\npath = '/a'"),
            "samovar.toml:4: `location` is not allowed in a `[[pool]]`: locations apply to all \
             pools, by path and host",
            "write `[[location]]`",
        ),
        (
            &format!("{api}worker = 3"),
            "samovar.toml:4: unknown key `pool.worker`",
            "did you mean `workers`?",
        ),
        (
            &format!("{api}[pool.limits]\nqueue_mx = 3"),
            "samovar.toml:5: unknown key `pool.limits.queue_mx`",
            "did you mean `limits.queue_max`?",
        ),
        (
            &format!("{api}workers = 'x'"),
            "samovar.toml:4: `workers = 'x'` is not allowed",
            "`workers` takes `auto`, a whole number from 1 to 1024, or a range of two such as \
             `2..64`",
        ),
        (
            &format!("{api}root = 'nowhere'"),
            "samovar.toml:4: `root = 'nowhere'` does not exist",
            "name the folder to serve, or a `.php` file in it that handles requests",
        ),
        (
            &format!("{api}[[pool]]\nname = 'api'\nmatch = '/b'"),
            "samovar.toml:4: `[[pool]]` has the name `api`, as the one in line 1",
            "set a different `name`",
        ),
        (
            &format!("{api}[[pool]]\nname = 'b'\nmatch = '/api/*'"),
            "samovar.toml:4: pool `b` has the same `match` and `host` as pool `api` in line 1",
            "put the narrower pool first: the first match applies",
        ),
        (
            &format!("{api}[[pool]]\nname = 'b'\nmatch = '/api/v2/*'\nhost = 'b.example'"),
            "samovar.toml:4: pool `b` never gets a request: pool `api` in line 1 matches all of \
             them",
            "put the narrower pool first: the first match applies",
        ),
        (
            "[[pool]]\nname = 'all'\nmatch = '/*'",
            "samovar.toml:1: pool `all` matches all requests: the default pool would get none",
            "move its settings outside the tables `[[pool]]`: there they apply to the default pool",
        ),
        (
            &format!("{api}[pool.limits]\nbody_bytes_max = '1G'"),
            "samovar.toml:1: `limits.body_bytes_max` of pool `api` is larger than the server's",
            "increase the one outside the tables, and decrease it in other pools",
        ),
    ] {
        check_refused(file, message, hint);
    }
    let narrow = "[[pool]]\nname = 'v2'\nmatch = '/api/v2/*'\n";
    assert_eq!(resolve(&format!("{narrow}{api}"), &["--root", "shop"]).pools.len(), 2);
}

#[test]
fn root_inside_another_root_is_reported() {
    let file = "[[pool]]\nname = 'api'\nhost = 'api.example'\nroot = 'api'\n";
    let folder = folder(file);
    let said = folder.sources().resolve().unwrap_err().to_string();
    let path = folder.path();
    let expected = format!(
        "samovar.toml:1: the root `{0}/api` of pool `api` and `{0}` of pool `default` are nested\n\
         hint: use separate folders, or the same one: otherwise the rules of the wrong pool would \
         apply to some files",
        path.display()
    );
    assert_eq!(said, expected);
    let beside = [("--root", "shop")].map(|(flag, value)| [flag, value]).concat();
    assert_eq!(sources(&folder, &beside).resolve().unwrap().pools.len(), 1);
}

#[test]
fn mistake_in_general_settings_is_reported_once() {
    let pools = "[[pool]]\nname = 'a'\nmatch = '/a'\n[[pool]]\nname = 'b'\nmatch = '/b'\n";
    let file = format!("workers = 0\n{pools}");
    assert_eq!(problems(&file, &[]).matches("workers = 0").count(), 1);
    check_problem(
        "[[pool]]\nname = 'a'\nmatch = 7",
        &[],
        "samovar.toml:3: `match` of a `[[pool]]` is not allowed",
        "`match` takes a path such as `/api/*`, or an array of them; `*` matches any text, \
         including `/`",
    );
}

#[test]
fn number_of_pools_is_limited() {
    let table = |n: usize| format!("[[pool]]\nname = 'p{n}'\nmatch = '/p{n}/*'\n");
    let of = |count: usize| (0..count).map(table).collect::<String>();
    assert_eq!(resolve(&of(31), &["--root", "shop"]).pools.len(), 31);
    let said = sources(&folder(&of(32)), &["--root", "shop"]).resolve().unwrap_err().to_string();
    assert!(said.contains("more than 31 `[[pool]]`"), "{said}");
}

#[test]
fn pools_need_restart_lists_their_fixed_settings() {
    let table = |name: &str, more: &str| {
        format!("[[pool]]\nname = '{name}'\nmatch = '/{name}/*'\n{more}\n")
    };
    let of = |text: &str| resolve(text, &["--root", "shop"]);
    let check = |new: &str, expected: &[&str]| {
        assert_eq!(pools_need_restart(&of(&table("a", "")), &of(new)), expected, "{new}");
    };
    check(&table("a", ""), &[]);
    check(&table("a", "workers = 7\nroot = 'api'"), &[]);
    check(&table("a", "[pool.limits]\nqueue_max = 77"), &["pool.a.limits.queue_max"]);
    check(&table("b", ""), &["pool"]);
    check("", &["pool"]);
    check(&format!("listen = '127.0.0.1:1'\n{}", table("a", "")), &[]);
}
