//! The section PHP: workers and the code that they run.

use std::path::PathBuf;

use crate::schema::setting::{Group, Kind, Preset, Setting};
use crate::schema::settings::{Compat, FINDING_KINDS, KeptConnections};
use crate::schema::{notation, resolve};

use super::row::{self, count, path};

/// Common values of this section's rows.
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
        doc: "Number of worker processes; auto: one per core",
        long: "A worker runs one request at a time. Scripts that wait a lot, for a database or \
               another server, need more workers than cores. With a range such as 2..256 the \
               server adds workers while requests are queued and the workers themselves wait. It \
               stops workers that are not needed. In the file also { min = 2, max = 256 }.",
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
        doc: "Maximum private memory of all workers together; above, none are added",
        long: "0: limited by the machine's memory. In any case no worker is added if less than a \
               twentieth of the memory of the machine, or of its control group, is free.",
        ..PLAIN
    },
    Setting {
        key: "workers.idle_max",
        flag: "workers-idle-max",
        value: "TIME",
        kind: Kind::Timeout { zero: None, field: |settings| &mut settings.workers.idle_max },
        default: Preset::Text("10s"),
        doc: "Time without a request after which an added worker exits",
        ..PLAIN
    },
    Setting {
        key: "workers.running_max",
        flag: "workers-running-max",
        value: "N",
        kind: Kind::PerCore { max: 1024, field: |settings| &mut settings.workers.running_max },
        default: Preset::Text("auto"),
        doc: "Maximum number of workers that run at the same time; auto: one per core",
        long: "A worker that waits, for a database or a timer, does not run. A request starts only \
               while fewer workers run, so that many workers do not compete for the caches of few \
               cores. If the value equals the number of workers, no request is held back.",
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
        default: Preset::Derived("the installed one; of several, that of the command `php`"),
        doc: "Worker binary, or the PHP version of the samovar-php to use",
        long: "8.2 means samovar-php8.2, which is searched next to samovar, in the folder of the \
               packages (/usr/libexec/samovar) and on PATH. Without a value it is samovar-php. If \
               that does not exist, it is the worker for the version of the command php, else the \
               one for the newest version.",
        ..PLAIN
    },
    Setting {
        key: "php_engine",
        flag: "php-engine",
        value: "FILE",
        kind: path(|settings, path| settings.php_engine = Some(path), "the path of a libphp"),
        default: Preset::Derived("the installed libphp"),
        doc: "libphp to use instead of the installed one",
        long: "make php-engine builds one from the source of the installed PHP that uses less CPU. \
               Its version and build must match the worker and the extensions, or the server does \
               not start.",
        finish: Some(resolve::php_engine),
        ..PLAIN
    },
    Setting {
        key: "php_ini",
        flag: "php-ini",
        value: "FILE",
        kind: path(|settings, path| settings.php_ini = Some(path), "a file that exists"),
        default: Preset::Derived("the system's php.ini for the embed SAPI"),
        doc: "php.ini to read instead of the system's",
        finish: Some(resolve::php_ini),
        ..PLAIN
    },
    Setting {
        key: "php",
        flag: "php",
        former_flag: Some("define"),
        short: Some('d'),
        value: "KEY=VALUE",
        kind: Kind::Pairs {
            allowed: "`key=value` of an ini directive, such as `memory_limit=256M`",
            put: |settings, text, _| {
                let (key, value) = notation::definition(text)?;
                match settings.php.get_mut(&key) {
                    Some(all) if notation::is_repeatable(&key) => add_line(all, &value),
                    _ => drop(settings.php.insert(key, value)),
                }
                Some(())
            },
            unpaired: Some((notation::is_php_binary, "php_binary")),
        },
        default: Preset::Derived("none"),
        doc: "Ini directive that overrides php.ini (repeatable)",
        long: "In the file: the table [php], with strings, integers and booleans. In the \
               environment: KEY=VALUE pairs, separated by commas or one per line. `extension`, \
               `zend_extension` and lists such as `name[]` can have several values; in the file as \
               an array: `extension = [\"redis\", \"gd\"]`. The values of all sources apply.",
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
        doc: "Value of PHP_SAPI and php_sapi_name()",
        long: "Applications and extensions know the names of other servers. It affects MediaWiki's \
               links, the features that Symfony and Laravel use, and the lists of monitoring \
               extensions. In console workers it is always cli.",
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
        default: Preset::Derived("none: the application calls Samovar\\checkpoint() itself"),
        doc: "File whose first inclusion is followed by a checkpoint",
        long: "The front controller runs once up to that point. Each request continues from there, \
               and is rolled back at its end. Code before the checkpoint must not depend on the \
               request.",
        finish: Some(resolve::checkpoint_after),
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
        doc: "File that each request includes first after a checkpoint",
        long: "It can read again data that the boot has read and that may have changed since. If \
               it returns false, the request runs as a whole script, and its worker boots again.",
        finish: Some(resolve::checkpoint_resume),
        ..PLAIN
    },
    Setting {
        key: "warmup",
        flag: "warmup",
        value: "TARGET",
        kind: Kind::List {
            allowed: "a path with its query, such as `/` or `/health?full=1`",
            clear: |settings| settings.warmup.clear(),
            push: |settings, text, _| {
                notation::target(text).then(|| settings.warmup.push(text.to_owned()))
            },
        },
        default: Preset::Derived("none"),
        doc: "GET request that is made before the image is taken (repeatable)",
        long: "All that the application loads for it, classes above all, is then in every worker.",
        ..PLAIN
    },
    Setting {
        key: "prewarm_boot",
        flag: "prewarm-boot",
        former_flag: Some("rehearse"),
        former_key: Some("rehearse"),
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.prewarm_boot),
        default: Preset::Text("true"),
        doc: "Whether the application boots once for its caches before the boot that is kept",
        long: "The second boot finds the compiled files and cached data of the first one. Its \
               image is smaller: requests change fewer of its pages. Turn it off if a boot must \
               not happen twice.",
        ..PLAIN
    },
    Setting {
        key: "relink",
        flag: "relink",
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.relink),
        default: Preset::Text("true"),
        doc: "Whether libphp calls its own functions directly",
        long: "A shared library calls even its own functions through a table of addresses. After \
               PHP has started, its code is rewritten in memory to call them directly. Turn it off \
               for tools that change the table later, or that compare code in memory with the \
               file. x86-64 only.",
        ..PLAIN
    },
    Setting {
        key: "disable_checkpoint",
        flag: "disable-checkpoint",
        former_flag: Some("whole-scripts"),
        former_key: Some("whole_scripts"),
        bare: true,
        group: Group::Php,
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.disable_checkpoint),
        default: Preset::Text("false"),
        doc: "Whether each request runs the whole script, without a checkpoint",
        long: "The application is not booted in advance. Samovar\\checkpoint() and \
               checkpoint_after have no effect, and Samovar\\serve() calls its handler once. To \
               find responses that differ between both modes, use samovar compare.",
        ..PLAIN
    },
    Setting {
        key: "rollback_every",
        flag: "rollback-every",
        value: "N",
        kind: count(0, 1_000_000_000, |settings| &mut settings.rollback_every),
        default: Preset::Text("0"),
        doc: "Number of requests after which a FrankenPHP worker script is rolled back",
        long: "The script returns to its first call of frankenphp_handle_request(). 1: no state is \
               left between requests. 0: no rollbacks. Only for worker scripts that call \
               frankenphp_handle_request(); Samovar\\serve() has an argument for it.",
        ..PLAIN
    },
    Setting {
        key: "checkpoint_connections",
        flag: "checkpoint-connections",
        value: "MODE",
        kind: Kind::Word {
            words: KeptConnections::WORDS,
            set: |settings, index| {
                settings.checkpoint_connections = KeptConnections::ALL[index];
            },
        },
        default: Preset::Text("prove"),
        doc: "Treatment of database connections that were opened above the checkpoint",
        long: "prove: the worker keeps a connection if every statement is proven to leave the \
               session unchanged; otherwise the session is reset, or the worker leaves. reset: the \
               session is reset after each request that used it. leave: a request that used one \
               ends its worker.",
        ..PLAIN
    },
    Setting {
        key: "compat",
        flag: "compat",
        value: "SET",
        kind: Kind::List {
            allowed: "`auto`, `frankenphp` or `apcu`",
            clear: |settings| settings.compat.clear(),
            push: |settings, text, _| {
                let at = Compat::WORDS.iter().position(|word| *word == text)?;
                settings.compat.push(Compat::ALL[at]);
                Some(())
            },
        },
        default: Preset::Derived("auto"),
        doc: "Function sets of other products that the application uses (repeatable)",
        long: "auto: detected from the text of the front controller, APP_RUNTIME and \
               FRANKENPHP_WORKER. frankenphp: the application calls frankenphp_handle_request(), \
               in any of its files. apcu: apcu_fetch() and the other APCu functions exist, with a \
               cache of shared.apcu_bytes, unless that extension is loaded.",
        ..PLAIN
    },
    Setting {
        key: "boot_reads",
        flag: "boot-reads",
        value: "NAME",
        kind: Kind::List {
            allowed: "a name such as `$_GET`, `$_SERVER['HTTP_HOST']` or `php://input`, or the end \
                      of the path of a .php file",
            clear: |settings| settings.boot_reads.clear(),
            push: |settings, text, _| {
                let allowed = !text.is_empty() && !text.contains(char::is_control);
                allowed.then(|| settings.boot_reads.push(text.to_owned()))
            },
        },
        default: Preset::Derived("none"),
        doc: "Request data that the boot reads on purpose (repeatable)",
        long: "Such reads are no finding: those of the named data, and those by code of the named \
               file. The names are those of the finding `request`.",
        ..PLAIN
    },
    Setting {
        key: "image_errors",
        flag: "image-errors",
        value: "KIND",
        kind: Kind::List {
            allowed: "`all`, `connection`, `tls`, `pipe`, `child`, `lock`, `session`, \
                      `thread`, `timer`, `signal`, `kernel-object`, `image` or `request`",
            clear: |settings| settings.image_errors.clear(),
            push: |settings, text, _| {
                let known = text == "all" || FINDING_KINDS.contains(&text);
                known.then(|| settings.image_errors.push(text.to_owned()))
            },
        },
        default: Preset::Derived("none"),
        doc: "Kinds of preflight findings that are errors (repeatable)",
        long: "If such an object is open at the checkpoint, the start or the reload fails. \
               Otherwise the server falls back to workers that boot individually, or to whole \
               scripts. `request` has no fallback and is not part of `all`. samovar status lists \
               the findings.",
        ..PLAIN
    },
];

/// Adds a value to those of a repeatable directive, unless it is among them.
fn add_line(all: &mut String, value: &str) {
    if !all.split('\n').any(|known| known == value) {
        all.push('\n');
        all.push_str(value);
    }
}
