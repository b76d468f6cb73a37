//! The one table of settings. Help, environment, file, manual and error texts derive from it.

use std::path::PathBuf;
use std::time::Duration;

use crate::resolve;
use crate::setting::{Field, Group, Kind, Preset, Setting};
use crate::settings::{
    AccessLog, AccessLogFormat, Compat, EarlyHints, FINDING_KINDS, LogFormat, LogLevel, Settings,
};
use crate::value;

/// What most settings have in common.
const PLAIN: Setting = Setting {
    key: "",
    flag: "",
    short: None,
    positional: false,
    group: Group::Serving,
    value: "",
    kind: Kind::Switch(|settings| &mut settings.static_files),
    default: Preset::Derived(""),
    doc: "",
    long: "",
    finish: None,
};

/// Everything that can be set, in the order in which it is listed.
pub static SETTINGS: &[Setting] = &[
    Setting {
        key: "root",
        flag: "root",
        positional: true,
        value: "PATH",
        kind: path(|settings, path| settings.root = path, "a folder or a `.php` file"),
        default: Preset::Derived("`public` if that folder exists, else `.`"),
        doc: "Folder to serve, or the .php file in it that answers",
        long: "A folder is the document root, and its index.php, if there is one, answers what no \
               file answers. A .php file is that script, and its folder is the root.",
        finish: Some(resolve::root),
        ..PLAIN
    },
    Setting {
        key: "listen",
        flag: "listen",
        short: Some('l'),
        value: "ADDR",
        kind: Kind::List {
            allowed: "an address such as `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080` or \
                      `:8080` (all IPv4 interfaces)",
            clear: |settings| settings.listen.clear(),
            push: |settings, text| value::listen(text).map(|listen| settings.listen.push(listen)),
        },
        default: Preset::Text("127.0.0.1:8080"),
        doc: "Address to listen on; can be given several times",
        long: "HOST:PORT, where :PORT means all IPv4 interfaces and port 0 any free port. The line \
               that says the server is ready names the port.",
        finish: Some(resolve::listen),
        ..PLAIN
    },
    Setting {
        key: "server_name",
        flag: "server-name",
        value: "NAME",
        kind: Kind::Text {
            allowed: "a host name",
            set: |settings, text, _| {
                let plain = !text.is_empty() && !text.contains(|c: char| c <= ' ');
                plain.then(|| settings.server_name = Some(text.to_owned()))
            },
        },
        default: Preset::Derived("the address that was connected to"),
        doc: "SERVER_NAME of requests without a Host header",
        ..PLAIN
    },
    Setting {
        key: "static_files",
        flag: "static-files",
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.static_files),
        default: Preset::Text("true"),
        doc: "Serve files that are not PHP",
        long: "With false every request goes to a script, because something in front of Samovar \
               serves the files.",
        ..PLAIN
    },
    Setting {
        key: "request_buffering",
        flag: "request-buffering",
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.request_buffering),
        default: Preset::Text("true"),
        doc: "Read a request's body completely before a worker is given the request",
        long: "What is beyond 64 KiB goes into an unlinked temporary file, so a slow client costs \
               no worker. With false the worker gets the body as it comes in.",
        ..PLAIN
    },
    Setting {
        key: "link_targets",
        flag: "link-targets",
        value: "DIR",
        kind: Kind::List {
            allowed: "the absolute path of a folder",
            clear: |settings| settings.link_targets.clear(),
            push: |settings, text| {
                let path = std::path::PathBuf::from(text);
                path.is_absolute().then(|| settings.link_targets.push(path))
            },
        },
        default: Preset::Derived("none"),
        doc: "Folders outside the root that symlinks may lead to; can be given several times",
        long: "A link that leaves the root is answered with 403 unless it leads below one of these. \
               Laravel's public/storage needs its storage/app/public here.",
        ..PLAIN
    },
    Setting {
        key: "trusted_proxies",
        flag: "trusted-proxies",
        value: "NET",
        kind: Kind::List {
            allowed: "an address or a network such as `10.0.0.0/8` or `::1`",
            clear: |settings| settings.trusted_proxies.clear(),
            push: |settings, text| {
                value::network(text).map(|network| settings.trusted_proxies.push(network))
            },
        },
        default: Preset::Derived("none"),
        doc: "Peers whose X-Forwarded-* headers are believed; can be given several times",
        long: "Anybody else's are passed to PHP as ordinary headers and change nothing about the \
               client's address or the scheme.",
        ..PLAIN
    },
    Setting {
        key: "early_hints",
        flag: "early-hints",
        value: "WHEN",
        kind: Kind::Word {
            words: EarlyHints::WORDS,
            set: |settings, index| settings.early_hints = EarlyHints::ALL[index],
        },
        default: Preset::Text("auto"),
        doc: "Who is sent the early hints (103) of headers_send(103)",
        long: "auto: clients that are no proxy. nginx before 1.29 takes such an answer for the final one, and the \
               client waits in vain. A proxy is one of `trusted_proxies`, and whoever sends Via, Forwarded, \
               X-Forwarded-For or X-Real-IP.",
        ..PLAIN
    },
    Setting {
        key: "temp_dir",
        flag: "temp-dir",
        value: "DIR",
        kind: path(|settings, path| settings.temp_dir = path, "a folder that exists"),
        default: Preset::Derived("`$TMPDIR`, else `/tmp`"),
        doc: "Folder for request bodies that do not fit into memory",
        finish: Some(resolve::temp_dir),
        ..PLAIN
    },
    Setting {
        key: "control",
        flag: "control",
        value: "SOCKET",
        kind: path(|settings, path| settings.control = Some(path), "the path of a socket"),
        default: Preset::Derived(
            "`samovar-PORT.sock` in `$XDG_RUNTIME_DIR`, else in `/tmp/samovar-UID`",
        ),
        doc: "Socket on which the server answers samovar status, reload and stop",
        long: "PORT is that of the first address. status, reload and stop find the socket by themselves \
               while there is only one.",
        finish: Some(resolve::control),
        ..PLAIN
    },
    Setting {
        key: "workers",
        flag: "workers",
        short: Some('w'),
        group: Group::Php,
        value: "N",
        kind: Kind::PerCore { max: 256, field: |settings| &mut settings.workers },
        default: Preset::Text("auto"),
        doc: "Worker processes; auto: one for each core",
        long: "A worker runs one request at a time. Scripts that wait a lot, for a database or \
               another server, want more workers than there are cores.",
        ..PLAIN
    },
    Setting {
        key: "php_binary",
        flag: "php",
        group: Group::Php,
        value: "PATH|VERSION",
        kind: Kind::Text {
            allowed: "the path of a worker binary, or a version such as `8.2`",
            set: |settings, text, base| value::php(text, base).map(|php| settings.php = Some(php)),
        },
        default: Preset::Derived("`samovar-php` beside `samovar`, else on `$PATH`"),
        doc: "Worker binary, or the PHP version whose samovar-php to use",
        long: "8.2 means samovar-php8.2, looked for beside samovar and on PATH.",
        ..PLAIN
    },
    Setting {
        key: "php_ini",
        flag: "php-ini",
        group: Group::Php,
        value: "FILE",
        kind: path(|settings, path| settings.php_ini = Some(path), "a file that exists"),
        default: Preset::Derived("the system's php.ini for the embed SAPI"),
        doc: "Read this php.ini instead of the system's",
        finish: Some(resolve::php_ini),
        ..PLAIN
    },
    Setting {
        key: "php",
        flag: "define",
        short: Some('d'),
        group: Group::Php,
        value: "KEY=VALUE",
        kind: Kind::Pairs {
            allowed: "`key=value` of an ini directive, such as `memory_limit=256M`",
            put: |settings, text| {
                let (key, value) = value::definition(text)?;
                settings.define.insert(key, value);
                Some(())
            },
        },
        default: Preset::Derived("none"),
        doc: "Set an ini directive, over php.ini; can be given several times",
        long: "In the file: the table [php], with strings, integers and booleans. In the \
               environment: KEY=VALUE pairs with commas between them, or one on each line.",
        ..PLAIN
    },
    Setting {
        key: "checkpoint_after",
        flag: "checkpoint-after",
        group: Group::Php,
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
        finish: Some(resolve::checkpoint_after),
        ..PLAIN
    },
    Setting {
        key: "warmup",
        flag: "warmup",
        group: Group::Php,
        value: "TARGET",
        kind: Kind::List {
            allowed: "a path with its query, such as `/` or `/health?full=1`",
            clear: |settings| settings.warmup.clear(),
            push: |settings, text| {
                let plain = text.starts_with('/') && !text.contains(|c: char| c <= ' ');
                plain.then(|| settings.warmup.push(text.to_owned()))
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
        group: Group::Php,
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.rehearse),
        default: Preset::Text("true"),
        doc: "Boot once for the caches before the boot that is kept",
        long: "What the first boot compiles and caches, the second finds, and its image is smaller: \
               requests change fewer pages of it. Turn it off where a boot must not happen twice.",
        ..PLAIN
    },
    Setting {
        key: "rollback_every",
        flag: "rollback-every",
        group: Group::Php,
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
        group: Group::Php,
        value: "WHAT",
        kind: Kind::Word {
            words: Compat::WORDS,
            set: |settings, index| settings.compat = Compat::ALL[index],
        },
        default: Preset::Text("auto"),
        doc: "Which other server's worker scripts the front controller is one of",
        long: "auto looks at its text, at APP_RUNTIME and at FRANKENPHP_WORKER; frankenphp says that it \
               calls frankenphp_handle_request(), wherever the call stands.",
        ..PLAIN
    },
    Setting {
        key: "image_errors",
        flag: "image-errors",
        group: Group::Php,
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
    Setting {
        key: "limits.head_bytes_max",
        flag: "head-bytes-max",
        group: Group::Limits,
        value: "SIZE",
        kind: Kind::Size {
            min: 4 << 10,
            max: 64 << 10, // What a slot of the ring holds.
            field: |settings| &mut settings.limits.head_bytes_max,
        },
        default: Preset::Text("64K"),
        doc: "Most bytes of a request's line and headers; beyond: 431",
        ..PLAIN
    },
    Setting {
        key: "limits.headers_max",
        flag: "headers-max",
        group: Group::Limits,
        value: "N",
        kind: count(1, 200, |settings| &mut settings.limits.headers_max),
        default: Preset::Text("100"),
        doc: "Most headers of a request; beyond: 431",
        ..PLAIN
    },
    Setting {
        key: "limits.body_bytes_max",
        flag: "body-bytes-max",
        group: Group::Limits,
        value: "SIZE",
        kind: Kind::Size {
            min: 1,
            max: 1 << 40,
            field: |settings| &mut settings.limits.body_bytes_max,
        },
        default: Preset::Text("128M"),
        doc: "Most bytes of a request's body; beyond: 413",
        long: "PHP's own post_max_size and upload_max_filesize hold besides.",
        ..PLAIN
    },
    Setting {
        key: "limits.connections_max",
        flag: "connections-max",
        group: Group::Limits,
        value: "N",
        kind: count(1, 1_000_000, |settings| &mut settings.limits.connections_max),
        default: Preset::Text("4096"),
        doc: "Most open client connections",
        long: "Further ones wait in the kernel's backlog.",
        ..PLAIN
    },
    Setting {
        key: "limits.queue_max",
        flag: "queue-max",
        group: Group::Limits,
        value: "N",
        kind: count(16, 4096, |settings| &mut settings.limits.queue_max),
        default: Preset::Text("512"),
        doc: "Most requests queued for a worker or in flight in one",
        long: "With no place free for as long as the queue time-out the answer is 503.",
        ..PLAIN
    },
    Setting {
        key: "limits.retries_max",
        flag: "retries-max",
        group: Group::Limits,
        value: "N",
        kind: count(0, 10, |settings| &mut settings.limits.retries_max),
        default: Preset::Text("2"),
        doc: "Most further attempts for a request whose worker died",
        long: "Only GET, HEAD and OPTIONS are run again, and only while nothing was answered.",
        ..PLAIN
    },
    Setting {
        key: "limits.growth_bytes_max",
        flag: "growth-bytes-max",
        group: Group::Limits,
        value: "SIZE",
        kind: Kind::Size {
            min: 1 << 20,
            max: 1 << 40,
            field: |settings| &mut settings.limits.growth_bytes_max,
        },
        default: Preset::Text("32M"),
        doc: "Most growth of a worker's PHP heap before Samovar\\serve() rolls back",
        long: "Holds where rollbackEvery, or for a FrankenPHP worker script rollback_every, is not 0.",
        ..PLAIN
    },
    Setting {
        key: "timeouts.header",
        flag: "header-timeout",
        kind: timeout(|settings| &mut settings.timeouts.header),
        default: Preset::Text("30s"),
        doc: "Most time for the head of a request to arrive",
        ..TIMEOUT
    },
    Setting {
        key: "timeouts.idle",
        flag: "idle-timeout",
        kind: timeout(|settings| &mut settings.timeouts.idle),
        default: Preset::Text("75s"),
        doc: "Most time between two requests on a connection",
        ..TIMEOUT
    },
    Setting {
        key: "timeouts.body",
        flag: "body-timeout",
        kind: timeout(|settings| &mut settings.timeouts.body),
        default: Preset::Text("60s"),
        doc: "Most time between two pieces of a request's body; beyond: 408",
        ..TIMEOUT
    },
    Setting {
        key: "timeouts.write",
        flag: "write-timeout",
        kind: timeout(|settings| &mut settings.timeouts.write),
        default: Preset::Text("60s"),
        doc: "Most time in which the client takes no byte of the answer",
        ..TIMEOUT
    },
    Setting {
        key: "timeouts.queue",
        flag: "queue-timeout",
        kind: timeout(|settings| &mut settings.timeouts.queue),
        default: Preset::Text("30s"),
        doc: "Most time a request waits for a worker; beyond: 503",
        ..TIMEOUT
    },
    Setting {
        key: "timeouts.answer",
        flag: "answer-timeout",
        kind: Kind::Timeout {
            zero: Some("never"),
            field: |settings| &mut settings.timeouts.answer,
        },
        default: Preset::Text("60s"),
        doc: "Most time in which a worker gives no byte of the answer; beyond: 504",
        long: "The worker is killed and replaced. 0: a worker may be silent for ever.",
        ..TIMEOUT
    },
    Setting {
        key: "timeouts.drain",
        flag: "drain-timeout",
        kind: timeout(|settings| &mut settings.timeouts.drain),
        default: Preset::Text("30s"),
        doc: "Most time for requests in flight to finish when the server is stopped or reloaded",
        ..TIMEOUT
    },
    Setting {
        key: "timeouts.boot",
        flag: "boot-timeout",
        kind: timeout(|settings| &mut settings.timeouts.boot),
        default: Preset::Text("60s"),
        doc: "Most time for the workers to start and boot the application",
        long: "The server is called ready without them then. A reload is given up.",
        ..TIMEOUT
    },
    Setting {
        key: "access_log",
        flag: "access-log",
        group: Group::Logs,
        value: "FILE",
        kind: Kind::Text {
            allowed: "`off`, `-` (stdout) or the path of a file",
            set: |settings, text, base| {
                settings.access_log = match text {
                    "off" => AccessLog::Off,
                    "-" => AccessLog::Stdout,
                    "" => return None,
                    _ => AccessLog::File(base.join(text)),
                };
                Some(())
            },
        },
        default: Preset::Text("off"),
        doc: "File to log each request to; -: stdout; off: nowhere",
        ..PLAIN
    },
    Setting {
        key: "access_log_format",
        flag: "access-log-format",
        group: Group::Logs,
        value: "FORMAT",
        kind: Kind::Word {
            words: AccessLogFormat::WORDS,
            set: |settings, index| settings.access_log_format = AccessLogFormat::ALL[index],
        },
        default: Preset::Text("combined"),
        doc: "How requests are logged",
        long: "combined is the format of Apache and nginx; json also tells the time, CPU and \
               memory that a request took.",
        ..PLAIN
    },
    Setting {
        key: "log_level",
        flag: "log-level",
        group: Group::Logs,
        value: "LEVEL",
        kind: Kind::Word {
            words: LogLevel::WORDS,
            set: |settings, index| settings.log_level = LogLevel::ALL[index],
        },
        default: Preset::Text("warn"),
        doc: "How much the server says about itself on stderr",
        ..PLAIN
    },
    Setting {
        key: "log_format",
        flag: "log-format",
        group: Group::Logs,
        value: "FORMAT",
        kind: Kind::Word {
            words: LogFormat::WORDS,
            set: |settings, index| settings.log_format = LogFormat::ALL[index],
        },
        default: Preset::Text("text"),
        doc: "How the server's own log lines look",
        ..PLAIN
    },
];

/// What the time-outs have in common.
const TIMEOUT: Setting = Setting { group: Group::Timeouts, value: "TIME", ..PLAIN };

const fn timeout(field: Field<Duration>) -> Kind {
    Kind::Timeout { zero: None, field }
}

const fn count(min: usize, max: usize, field: Field<usize>) -> Kind {
    Kind::Count { min, max, field }
}

const fn path(set: fn(&mut Settings, PathBuf), allowed: &'static str) -> Kind {
    Kind::Path { allowed, set }
}
