//! The section Limits: caps on what clients can make the server hold.

use crate::schema::setting::{Group, Kind, OnReload, Preset, Setting};
use crate::schema::settings::Scheduling;
use crate::schema::{finish, notation};

use super::row::{self, count};

/// What its settings have in common.
const PLAIN: Setting = Setting { group: Group::Limits, ..row::PLAIN };

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "limits.head_bytes_max",
        flag: "head-bytes-max",
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
        value: "N",
        kind: count(1, 200, |settings| &mut settings.limits.headers_max),
        default: Preset::Text("100"),
        doc: "Most headers of a request; beyond: 431",
        ..PLAIN
    },
    Setting {
        key: "limits.body_bytes_max",
        flag: "body-bytes-max",
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
        key: "limits.body_rate_min",
        flag: "body-rate-min",
        value: "SIZE",
        kind: Kind::Size {
            min: 0,
            max: 1 << 30,
            field: |settings| &mut settings.limits.body_rate_min,
        },
        default: Preset::Text("500"),
        doc: "Least bytes of a request's body per second, on average; below: 408",
        long: "A body has the body time-out, and a second more for each so many bytes. What counts is \
               the time that is spent waiting for the client. 0: it may be as slow as it likes.",
        ..PLAIN
    },
    Setting {
        key: "limits.connections_max",
        flag: "connections-max",
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
        value: "N",
        kind: count(16, 4096, |settings| &mut settings.limits.queue_max),
        default: Preset::Text("512"),
        doc: "Most requests queued for a worker or in flight in one",
        long: "With no place free for as long as the queue time-out the answer is 503; at once where so many wait already, or \
               where its turn would come too late, by the rate at which requests are finished.",
        on_reload: OnReload::Kept(|old, new| old.limits.queue_max != new.limits.queue_max),
        ..PLAIN
    },
    Setting {
        key: "limits.requests_max",
        flag: "requests-max",
        value: "N",
        kind: count(0, 1_000_000_000, |settings| &mut settings.limits.requests_max),
        default: Preset::Text("0"),
        doc: "Requests after which a worker is replaced",
        long: "Its successor takes requests before it goes, and one goes at a time; each somewhere in the last tenth, so \
               that not all end together. The same holds for age and memory. 0: never.",
        ..PLAIN
    },
    Setting {
        key: "limits.age_max",
        flag: "age-max",
        value: "TIME",
        kind: Kind::Timeout { zero: Some("never"), field: |settings| &mut settings.limits.age_max },
        default: Preset::Text("0"),
        doc: "Age after which a worker is replaced",
        ..PLAIN
    },
    Setting {
        key: "limits.memory_max",
        flag: "memory-max",
        value: "SIZE",
        kind: Kind::Size {
            min: 0,
            max: 1 << 40,
            field: |settings| &mut settings.limits.memory_max,
        },
        default: Preset::Text("0"),
        doc: "Memory of a worker's own after which it is replaced",
        long: "What it shares with others does not count: libraries, opcache, the booted application as far as it has not \
               changed it; nor what a request needs: of a worker that is never seen idle, it counts when it is too large in three requests, \
               at three looks in a row. One worker is looked at each second. 0: never.",
        ..PLAIN
    },
    Setting {
        key: "limits.memory_ceiling",
        flag: "memory-ceiling",
        value: "SIZE",
        kind: Kind::Size {
            min: 0,
            max: 1 << 40,
            field: |settings| &mut settings.limits.memory_ceiling,
        },
        default: Preset::Text("0"),
        doc: "Most memory that a process of PHP may have for itself, libraries' included",
        long: "The kernel refuses more (RLIMIT_DATA), and PHP or the library that asked says so and ends the process: 502. \
               PHP's own memory_limit, which ends a request better, knows PHP's memory only. Programs that PHP starts have \
               the same ceiling. Memory that is shared is not counted: shmop, System V's, files in /dev/shm, mappings that are \
               handed to children. 0: none.",
        ..PLAIN
    },
    Setting {
        key: "limits.open_files",
        flag: "open-files",
        value: "N",
        kind: count(0, 1 << 20, |settings| &mut settings.limits.open_files),
        default: Preset::Text("0"),
        doc: "Most files and connections that a process of PHP may have open",
        long: "What php-fpm calls rlimit_files. The server has its own limit, which is as high as it needs. Programs that PHP starts have the \
               same. At least 256, which a worker's own need. 0: what the server was started with.",
        finish: Some(finish::open_files),
        ..PLAIN
    },
    Setting {
        key: "limits.processes",
        flag: "processes",
        value: "N",
        kind: count(0, 4_194_304, |settings| &mut settings.limits.processes),
        default: Preset::Text("0"),
        doc: "Most processes and threads of the server's user; PHP starts none beyond",
        long: "The kernel (RLIMIT_NPROC) counts all that the user has, the server's threads and other pools among them, and holds root to \
               nothing. It stops a script that forks without end; workers that are replaced need room, too. 0: as the server.",
        ..PLAIN
    },
    Setting {
        key: "limits.file_bytes",
        flag: "file-bytes",
        value: "SIZE",
        kind: Kind::Size {
            min: 0,
            max: 1 << 50,
            field: |settings| &mut settings.limits.file_bytes,
        },
        default: Preset::Text("0"),
        doc: "Largest file that PHP may write",
        long: "A write beyond fails with \"File too large\", also that of a program that PHP starts. Files in memory count, so there must be room for the \
               application's image: 64M at least; where that is not enough, `samovar status` says so, and requests run whole scripts. 0: as the server.",
        finish: Some(finish::file_bytes),
        ..PLAIN
    },
    Setting {
        key: "limits.core_bytes",
        flag: "core-bytes",
        value: "SIZE",
        kind: Kind::Size {
            min: 0,
            max: 1 << 40,
            field: |settings| &mut settings.limits.core_bytes,
        },
        default: Preset::Derived("what the server was started with"),
        doc: "Largest memory dump that a process of PHP leaves when it crashes",
        long: "What php-fpm calls rlimit_core. 0: none is left, and with it nothing of what requests have told.",
        finish: Some(finish::core_bytes),
        ..PLAIN
    },
    Setting {
        key: "limits.nice",
        flag: "nice",
        value: "N",
        kind: count(0, 19, |settings| &mut settings.limits.nice),
        default: Preset::Text("0"),
        doc: "How far PHP's processes give way to others for the processor",
        long: "Added to the niceness of the server, whose front is not slowed down by it: for a pool that may take long. There is no limit of CPU time \
               (RLIMIT_CPU), which a worker would reach by many good requests: timeouts.request ends a bad one.",
        ..PLAIN
    },
    Setting {
        key: "limits.scheduling",
        flag: "scheduling",
        value: "POLICY",
        kind: Kind::Word {
            words: Scheduling::WORDS,
            set: |settings, index| settings.limits.scheduling = Scheduling::ALL[index],
        },
        default: Preset::Text("other"),
        doc: "Whether PHP's processes take only what is left of the processor",
        long: "idle: whoever else has need of a core takes it from them at once, and niceness no longer counts: for a pool beside one that customers \
               wait for. On a machine that is busy without end its requests may stand still: give it time-outs. other: as everybody, by niceness.",
        ..PLAIN
    },
    Setting {
        key: "limits.client_share",
        flag: "client-share",
        value: "PERCENT",
        kind: count(1, 100, |settings| &mut settings.limits.client_share),
        default: Preset::Text("100"),
        doc: "Most of the queue's places for requests of one client, percent; beyond, while others wait: 503",
        long: "A client is an address, of IPv6 a network of 64 bits, by the word of trusted proxies. Behind a proxy that \
               is not trusted all clients are one: then leave it at 100, which is no limit.",
        ..PLAIN
    },
    Setting {
        key: "limits.client_connections_max",
        flag: "client-connections-max",
        value: "N",
        kind: count(0, 1_000_000, |settings| &mut settings.limits.client_connections_max),
        default: Preset::Text("0"),
        doc: "Most open connections of one client; further ones are closed at once",
        long: "Trusted proxies have as many as they like. 0: no limit.",
        ..PLAIN
    },
    Setting {
        key: "limits.priority_paths",
        flag: "priority-paths",
        value: "PATTERN",
        kind: Kind::List {
            allowed: "patterns of paths, such as `/health` or `/checkout/*`",
            clear: |settings| settings.limits.priority_paths.clear(),
            push: |settings, text| {
                let is_pattern = notation::path_pattern(text);
                is_pattern.then(|| settings.limits.priority_paths.push(text.to_owned()))
            },
        },
        default: Preset::Derived("none"),
        doc: "Paths whose requests are refused last when there is no room; can be given several times",
        long: "A tenth of the queue's places is theirs alone, and they are not refused because others would come first.",
        ..PLAIN
    },
    Setting {
        key: "limits.retries_max",
        flag: "retries-max",
        value: "N",
        kind: count(0, 10, |settings| &mut settings.limits.retries_max),
        default: Preset::Text("2"),
        doc: "Most further attempts for a request whose worker died",
        long: "Only GET, HEAD and OPTIONS are run again, and only while nothing was answered. What crashes PHP \
               is run again once, and for a minute not at all when the same page has crashed before.",
        ..PLAIN
    },
    Setting {
        key: "limits.answer_memory_bytes_max",
        flag: "answer-memory-bytes-max",
        value: "SIZE",
        kind: Kind::Size {
            min: 0,
            max: 1 << 30,
            field: |settings| &mut settings.limits.answer_memory_bytes_max,
        },
        default: Preset::Text("256K"),
        doc: "Bytes of an answer kept in memory for a client that takes them slowly",
        long: "A worker is done when it has given its answer, not when the client has read it.",
        ..PLAIN
    },
    Setting {
        key: "limits.answer_file_bytes_max",
        flag: "answer-file-bytes-max",
        value: "SIZE",
        kind: Kind::Size {
            min: 0,
            max: 1 << 40,
            field: |settings| &mut settings.limits.answer_file_bytes_max,
        },
        default: Preset::Text("1G"),
        doc: "Bytes of such an answer kept in a temporary file; beyond, its worker waits",
        long: "The file is in temp_dir and has no name. With 0 here and for the memory a worker always waits for \
               its client.",
        ..PLAIN
    },
    Setting {
        key: "limits.growth_bytes_max",
        flag: "growth-bytes-max",
        value: "SIZE",
        kind: Kind::Size {
            min: 1 << 20,
            max: 1 << 40,
            field: |settings| &mut settings.limits.growth_bytes_max,
        },
        default: Preset::Text("32M"),
        doc: "Most growth of a worker's PHP heap before Samovar\\serve() rolls back",
        long: "Holds where rollbackEvery, or for a FrankenPHP worker script rollback_every, is not 0. Where it is 0, a worker that \
               has grown by an eighth of it twice names in the log what grows.",
        ..PLAIN
    },
    Setting {
        key: "limits.tasks_max",
        flag: "tasks-max",
        value: "N",
        kind: count(1, 1024, |settings| &mut settings.limits.tasks_max),
        default: Preset::Text("256"),
        doc: "Most tasks of one request that are in flight at once",
        long: "Samovar\\parallel() and its like throw an Error beyond.",
        ..PLAIN
    },
    Setting {
        key: "limits.task_stack_bytes",
        flag: "task-stack-bytes",
        value: "SIZE",
        kind: Kind::Size {
            min: 128 << 10,
            max: 64 << 20,
            field: |settings| &mut settings.limits.task_stack_bytes,
        },
        default: Preset::Text("512K"),
        doc: "Stack of a task for PHP's own functions and the libraries below them",
        long: "Only what is used of it takes memory. PHP code that calls itself needs none of it.",
        ..PLAIN
    },
];
