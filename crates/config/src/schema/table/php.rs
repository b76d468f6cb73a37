//! The section PHP: workers and what they run.

use std::path::PathBuf;

use crate::schema::setting::{Group, Kind, Preset, Setting};
use crate::schema::settings::{Compat, FINDING_KINDS};
use crate::schema::{finish, notation};

use super::row::{self, count, path};

/// What its settings have in common.
const PLAIN: Setting = Setting { group: Group::Php, ..row::PLAIN };

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "workers",
        flag: "workers",
        short: Some('w'),
        value: "N|MIN..MAX",
        kind: Kind::Range {
            max: 1024,
            fields: |settings| (&mut settings.workers.min, &mut settings.workers.max),
        },
        default: Preset::Text("auto"),
        doc: "Worker processes; auto: one for each core",
        long: "A worker runs one request at a time. Scripts that wait a lot, for a database or \
               another server, want more workers than there are cores. With a range such as 2..256 \
               the server adds workers while requests wait and the workers do too, and takes away \
               those that nobody needs. In the file also { min = 2, max = 256 }.",
        ..PLAIN
    },
    Setting {
        key: "workers.memory_max",
        flag: "workers-memory-max",
        value: "SIZE",
        kind: Kind::Size {
            min: 0,
            max: 1 << 44,
            field: |settings| &mut settings.workers.memory_max,
        },
        default: Preset::Text("0"),
        doc: "Most memory of their own that workers may have together before no more are added",
        long: "0: as much as there is. Whatever stands here, none is added when less than a \
               twentieth of the machine's memory, or of the control group's, is free.",
        ..PLAIN
    },
    Setting {
        key: "workers.idle_max",
        flag: "workers-idle-max",
        value: "TIME",
        kind: Kind::Timeout { zero: None, field: |settings| &mut settings.workers.idle_max },
        default: Preset::Text("10s"),
        doc: "After how long without a request a worker that was added goes",
        ..PLAIN
    },
    Setting {
        key: "workers.running_max",
        flag: "workers-running-max",
        value: "N",
        kind: Kind::PerCore { max: 1024, field: |settings| &mut settings.workers.running_max },
        default: Preset::Text("auto"),
        doc: "Most workers that run at once; auto: as many as there are cores",
        long: "A worker that waits, for a database or a time, does not run. A request is begun \
               only while fewer workers run than this, so that many workers do not share the \
               caches of few cores. With as many as there are workers, nothing is held back.",
        ..PLAIN
    },
    Setting {
        key: "php_binary",
        flag: "php-binary",
        value: "PATH|VERSION",
        kind: Kind::Text {
            allowed: "the path of a worker binary, or a version such as `8.2`",
            set: |settings, text, base| {
                notation::php_binary(text, base).map(|binary| settings.php_binary = Some(binary))
            },
        },
        default: Preset::Derived("`samovar-php` beside `samovar`, else on `$PATH`"),
        doc: "Worker binary, or the PHP version whose samovar-php to use",
        long: "8.2 means samovar-php8.2, looked for beside samovar and on PATH.",
        ..PLAIN
    },
    Setting {
        key: "php_engine",
        flag: "php-engine",
        value: "FILE",
        kind: path(|settings, path| settings.php_engine = Some(path), "a libphp's file"),
        default: Preset::Derived("the libphp that is installed"),
        doc: "Use this libphp instead of the installed one",
        long: "make php-engine builds one of the installed PHP's source that takes less CPU. It must be of the \
               same version and build as the worker and the extensions, or the server does not start.",
        finish: Some(finish::php_engine),
        ..PLAIN
    },
    Setting {
        key: "php_ini",
        flag: "php-ini",
        value: "FILE",
        kind: path(|settings, path| settings.php_ini = Some(path), "a file that exists"),
        default: Preset::Derived("the system's php.ini for the embed SAPI"),
        doc: "Read this php.ini instead of the system's",
        finish: Some(finish::php_ini),
        ..PLAIN
    },
    Setting {
        key: "php",
        flag: "php",
        formerly: Some("define"),
        short: Some('d'),
        value: "KEY=VALUE",
        kind: Kind::Pairs {
            allowed: "`key=value` of an ini directive, such as `memory_limit=256M`",
            put: |settings, text| {
                let (key, value) = notation::definition(text)?;
                settings.php.insert(key, value);
                Some(())
            },
            unpaired: Some((notation::is_php_binary, "php_binary")),
        },
        default: Preset::Derived("none"),
        doc: "Set an ini directive, over php.ini; can be given several times",
        long: "In the file: the table [php], with strings, integers and booleans. In the \
               environment: KEY=VALUE pairs with commas between them, or one on each line.",
        ..PLAIN
    },
    Setting {
        key: "sapi_name",
        flag: "sapi-name",
        value: "NAME",
        kind: Kind::Text {
            allowed: "up to 31 lower-case letters, digits, `-` and `_`",
            set: |settings, text, _| {
                let plain =
                    |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b);
                let allowed = (1..=31).contains(&text.len()) && text.bytes().all(plain);
                allowed.then(|| text.clone_into(&mut settings.sapi_name))
            },
        },
        default: Preset::Text("fpm-fcgi"),
        doc: "PHP_SAPI and php_sapi_name()",
        long: "Applications and extensions know the names of other servers: MediaWiki's links, Symfony's and \
               Laravel's choice of features, and the lists of monitoring extensions follow it. Console \
               workers are cli whatever stands here.",
        ..PLAIN
    },
    Setting {
        key: "checkpoint_after",
        flag: "checkpoint-after",
        value: "FILE",
        kind: Kind::Text {
            allowed: "a .php file, absolute or below the root",
            set: |settings, text, _| {
                let file = (!text.is_empty()).then(|| PathBuf::from(text));
                settings.checkpoint_after = file;
                settings.checkpoint_after.is_some().then_some(())
            },
        },
        default: Preset::Derived("where the application calls Samovar\\checkpoint()"),
        doc: "Place a checkpoint right after FILE was first included",
        long: "The front controller is run down to there once; each request continues below it and \
               is rolled back at its end. Above it nothing may depend on the request.",
        finish: Some(finish::checkpoint_after),
        ..PLAIN
    },
    Setting {
        key: "checkpoint_resume",
        flag: "checkpoint-resume",
        value: "FILE",
        kind: Kind::Text {
            allowed: "a .php file, absolute or below the root",
            set: |settings, text, _| {
                let file = (!text.is_empty()).then(|| PathBuf::from(text));
                settings.checkpoint_resume = file;
                settings.checkpoint_resume.is_some().then_some(())
            },
        },
        default: Preset::Derived("none"),
        doc: "Include FILE first in each request below a checkpoint",
        long: "It is the place to read again what the boot has read and what may have changed since. When it \
               returns false, the request runs as a whole script, and its worker boots anew.",
        finish: Some(finish::checkpoint_resume),
        ..PLAIN
    },
    Setting {
        key: "warmup",
        flag: "warmup",
        value: "TARGET",
        kind: Kind::List {
            allowed: "a path with its query, such as `/` or `/health?full=1`",
            clear: |settings| settings.warmup.clear(),
            push: |settings, text| {
                notation::target(text).then(|| settings.warmup.push(text.to_owned()))
            },
        },
        default: Preset::Derived("none"),
        doc: "A GET request before the image is taken; can be given several times",
        long: "What the application loads for it, classes above all, is in every worker then.",
        ..PLAIN
    },
    Setting {
        key: "rehearse",
        flag: "rehearse",
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.rehearse),
        default: Preset::Text("true"),
        doc: "Boot once for the caches before the boot that is kept",
        long: "What the first boot compiles and caches, the second finds, and its image is smaller: \
               requests change fewer pages of it. Turn it off where a boot must not happen twice.",
        ..PLAIN
    },
    Setting {
        key: "relink",
        flag: "relink",
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.relink),
        default: Preset::Text("true"),
        doc: "Have libphp call its own functions directly",
        long: "A shared library calls even its own functions by way of a table. When PHP has started, its code is \
               written anew in memory, without that. Turn it off for tools that change the table later, or \
               compare code in memory with the file. x86-64 only.",
        ..PLAIN
    },
    Setting {
        key: "whole_scripts",
        flag: "whole-scripts",
        bare: true,
        group: Group::Php,
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.whole_scripts),
        default: Preset::Text("false"),
        doc: "Run the whole script for each request, whatever the application says",
        long: "Nothing is booted ahead: Samovar\\checkpoint() and checkpoint_after do nothing, and \
               Samovar\\serve() calls its handler once. Does an answer differ without? samovar \
               compare asks that of many.",
        ..PLAIN
    },
    Setting {
        key: "rollback_every",
        flag: "rollback-every",
        value: "N",
        kind: count(0, 1_000_000_000, |settings| &mut settings.rollback_every),
        default: Preset::Text("0"),
        doc: "Requests after which a FrankenPHP worker script returns to its first call",
        long: "1 leaves no state between requests, 0 rolls nothing back. Only for worker scripts \
               that call frankenphp_handle_request(); Samovar\\serve() is told by its argument.",
        ..PLAIN
    },
    Setting {
        key: "compat",
        flag: "compat",
        value: "WHAT",
        kind: Kind::List {
            allowed: "`auto`, `frankenphp` or `apcu`",
            clear: |settings| settings.compat.clear(),
            push: |settings, text| {
                let at = Compat::WORDS.iter().position(|word| *word == text)?;
                settings.compat.push(Compat::ALL[at]);
                Some(())
            },
        },
        default: Preset::Derived("auto"),
        doc: "Whose functions the application calls; can be given several times",
        long: "auto looks at the front controller's text, at APP_RUNTIME and at FRANKENPHP_WORKER; frankenphp \
               says that it calls frankenphp_handle_request(), wherever the call stands. apcu defines apcu_fetch() \
               and its like, over a cache of shared.apcu_bytes, unless that extension is loaded.",
        ..PLAIN
    },
    Setting {
        key: "image_errors",
        flag: "image-errors",
        value: "KIND",
        kind: Kind::List {
            allowed: "`all`, `connection`, `tls`, `pipe`, `child`, `lock`, `thread`, `timer`, \
                      `kernel-object` or `image`",
            clear: |settings| settings.image_errors.clear(),
            push: |settings, text| {
                let known = text == "all" || FINDING_KINDS.contains(&text);
                known.then(|| settings.image_errors.push(text.to_owned()))
            },
        },
        default: Preset::Derived("none"),
        doc: "What must not be open at the checkpoint; can be given several times",
        long: "Without it the server falls back: workers that boot one by one, or whole scripts. \
               samovar status names what was found.",
        ..PLAIN
    },
];
