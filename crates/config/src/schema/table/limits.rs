//! The section Limits: limits on the resources that clients and PHP can use.

use crate::schema::setting::{Group, Kind, OnReload, Preset, Setting};
use crate::schema::settings::Scheduling;
use crate::schema::{notation, resolve};

use super::row::{self, count};

/// Common values of this section's rows.
const PLAIN: Setting = Setting { group: Group::Limits, ..row::PLAIN };

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "limits.head_bytes_max",
        flag: "head-bytes-max",
        value: "SIZE",
        kind: Kind::Size {
            min: 4 << 10,
            max: 64 << 10, // Capacity of a ring slot.
            field: |settings| &mut settings.limits.head_bytes_max,
        },
        default: Preset::Text("64K"),
        doc: "Maximum size of a request line with its headers; above: 431",
        ..PLAIN
    },
    Setting {
        key: "limits.headers_max",
        flag: "headers-max",
        value: "N",
        kind: count(1, 1000, |settings| &mut settings.limits.headers_max),
        default: Preset::Text("400"),
        doc: "Maximum number of headers of a request; above: 431. All `Cookie` headers of an \
              HTTP/2 request count as one",
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
        doc: "Maximum size of a request body; above: 413",
        long: "PHP's own post_max_size and upload_max_filesize also apply.",
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
        doc: "Minimum average rate of a request body, in bytes per second; below: 408",
        long: "The client may take the body timeout, plus one second per this number of bytes. \
               Only the time spent waiting for the client counts. 0: no minimum.",
        ..PLAIN
    },
    Setting {
        key: "limits.connections_max",
        flag: "connections-max",
        value: "N",
        kind: count(1, 1_000_000, |settings| &mut settings.limits.connections_max),
        default: Preset::Text("4096"),
        doc: "Maximum number of open client connections",
        long: "Further connections wait in the kernel's backlog until one ends. If none is idle, \
               connections whose request is incomplete are closed: those of the client that has \
               most of them.",
        ..PLAIN
    },
    Setting {
        key: "limits.queue_max",
        flag: "queue-max",
        value: "N",
        kind: count(16, 4096, |settings| &mut settings.limits.queue_max),
        default: Preset::Text("512"),
        doc: "Maximum number of requests that are queued or in flight",
        long: "If no place becomes free within the queue timeout, the response is 503. It is sent \
               immediately if this number of requests already waits. It is also sent immediately \
               if, at the current rate of finished requests, the wait would be too long.",
        on_reload: OnReload::Kept(|old, new| old.limits.queue_max != new.limits.queue_max),
        ..PLAIN
    },
    Setting {
        key: "limits.requests_max",
        flag: "requests-max",
        value: "N",
        kind: count(0, 1_000_000_000, |settings| &mut settings.limits.requests_max),
        default: Preset::Text("0"),
        doc: "Number of requests after which a worker is replaced",
        long: "Workers are replaced one at a time, and the successor takes requests before the old \
               worker exits. Each worker is replaced somewhere in the last tenth of the limit, so \
               that not all end together. Limits on age and memory replace workers in the same \
               way. 0: never.",
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
        doc: "Private memory of a worker above which it is replaced",
        long: "Shared memory does not count: libraries, opcache, and unchanged pages of the booted \
               application. Memory of a running request does not count either: a worker is \
               measured while it is idle. A worker that is never idle must exceed the limit in \
               three different requests, in three consecutive checks. One worker is checked per \
               second. 0: never.",
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
        doc: "Maximum private memory of a PHP process, including that of libraries",
        long: "The kernel refuses to allocate more (RLIMIT_DATA). PHP or the library then reports \
               an error and ends the process: 502. PHP's own memory_limit ends a request more \
               gracefully, but covers only PHP's memory. Programs that PHP starts have the same \
               limit. Shared memory does not count: shmop, System V, files in /dev/shm, mappings \
               shared with child processes. 0: no limit.",
        ..PLAIN
    },
    Setting {
        key: "limits.open_files",
        flag: "open-files",
        value: "N",
        kind: count(0, 1 << 20, |settings| &mut settings.limits.open_files),
        default: Preset::Text("0"),
        doc: "Maximum number of open files and connections of a PHP process",
        long: "Like php-fpm's rlimit_files. The server has its own limit, which is as high as it \
               needs. Programs that PHP starts have the same limit. At least 256, which a worker \
               itself needs. 0: the limit that the server was started with.",
        finish: Some(resolve::open_files),
        ..PLAIN
    },
    Setting {
        key: "limits.processes",
        flag: "processes",
        value: "N",
        kind: count(0, 4_194_304, |settings| &mut settings.limits.processes),
        default: Preset::Text("0"),
        doc: "Maximum number of processes and threads of the server's user",
        long: "Above it, PHP cannot start processes. The kernel (RLIMIT_NPROC) counts all \
               processes of the user, including the server's threads and other pools, and does not \
               limit root. It stops a script that forks endlessly. Leave room for workers that are \
               being replaced. 0: the server's limit.",
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
        doc: "Maximum size of a file that PHP writes",
        long: "A larger write fails with \"File too large\", also in programs that PHP starts. \
               Files in memory count too, so the application's image must fit: at least 64M. If \
               that is not enough, `samovar status` reports it, and requests run whole scripts. 0: \
               the server's limit.",
        finish: Some(resolve::file_bytes),
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
        default: Preset::Derived("the limit that the server was started with"),
        doc: "Maximum size of a core dump of a PHP process",
        long: "Like php-fpm's rlimit_core. 0: no core dumps, which would contain data of requests.",
        finish: Some(resolve::core_bytes),
        ..PLAIN
    },
    Setting {
        key: "limits.nice",
        flag: "nice",
        value: "N",
        kind: count(0, 19, |settings| &mut settings.limits.nice),
        default: Preset::Text("0"),
        doc: "Niceness of PHP processes, added to the server's",
        long: "A higher value gives other processes precedence on the CPU, for a pool that may be \
               slow. It does not slow down the server's front. There is no limit on CPU time \
               (RLIMIT_CPU), because a worker would reach it after many normal requests: use \
               timeouts.request.",
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
        doc: "CPU scheduling policy of PHP processes",
        long: "idle: any other process takes the core from them immediately, and niceness has no \
               effect. Use it for a pool with low priority. On a machine that is always busy its \
               requests may never finish: set timeouts. other: the normal policy, with niceness.",
        ..PLAIN
    },
    Setting {
        key: "limits.client_share",
        flag: "client-share",
        value: "PERCENT",
        kind: count(1, 100, |settings| &mut settings.limits.client_share),
        default: Preset::Text("100"),
        doc: "Maximum share of the queue for one client, in percent; above: 503",
        long: "Applies only while other requests wait. Below 100, the queue is also fair: each \
               client with waiting requests gets the same share of the workers' time, with few or \
               many requests in the queue. A client is an IPv4 address or an IPv6 \
               network of 64 bits, as reported by trusted proxies. Behind a proxy that is not \
               trusted, all clients count as one: keep the value 100, which is no limit.",
        ..PLAIN
    },
    Setting {
        key: "limits.client_connections_max",
        flag: "client-connections-max",
        value: "N",
        kind: count(0, 1_000_000, |settings| &mut settings.limits.client_connections_max),
        default: Preset::Derived(
            "a quarter of limits.connections_max, at least 64; clients on the same host are not \
             limited",
        ),
        doc: "Maximum number of open connections of one client",
        long: "Further connections are closed immediately. A client is an IPv4 address or an IPv6 \
               network of 64 bits. Trusted proxies are not limited: name yours in \
               trusted_proxies. 0: no limit.",
        finish: Some(resolve::client_connections_max),
        ..PLAIN
    },
    Setting {
        key: "limits.priority_paths",
        flag: "priority-paths",
        value: "PATTERN",
        kind: Kind::List {
            allowed: "patterns of paths, such as `/health` or `/checkout/*`",
            clear: |settings| settings.limits.priority_paths.clear(),
            push: |settings, text, _| {
                let is_pattern = notation::path_pattern(text);
                is_pattern.then(|| settings.limits.priority_paths.push(text.to_owned()))
            },
        },
        default: Preset::Derived("none"),
        doc: "Paths whose requests are rejected last under overload (repeatable)",
        long: "A tenth of the queue is reserved for them, and they are not rejected because of a \
               long expected wait.",
        ..PLAIN
    },
    Setting {
        key: "limits.retries_max",
        flag: "retries-max",
        value: "N",
        kind: count(0, 10, |settings| &mut settings.limits.retries_max),
        default: Preset::Text("2"),
        doc: "Maximum number of retries of a request whose worker died",
        long: "Only GET, HEAD and OPTIONS are retried, and only while no response has been sent. A \
               request that crashes PHP is retried once. It is not retried if the same page has \
               crashed in the minute before.",
        ..PLAIN
    },
    Setting {
        key: "limits.response_memory_bytes_max",
        flag: "response-memory-bytes-max",
        former_flag: Some("answer-memory-bytes-max"),
        former_key: Some("limits.answer_memory_bytes_max"),
        value: "SIZE",
        kind: Kind::Size {
            min: 0,
            max: 1 << 30,
            field: |settings| &mut settings.limits.response_memory_bytes_max,
        },
        default: Preset::Text("256K"),
        doc: "Bytes of a response that are kept in memory for a slow client",
        long: "A worker is free as soon as its response is complete, even if the client has not \
               read it yet.",
        ..PLAIN
    },
    Setting {
        key: "limits.response_spill_bytes_max",
        flag: "response-spill-bytes-max",
        former_flag: Some("answer-file-bytes-max"),
        former_key: Some("limits.answer_file_bytes_max"),
        value: "SIZE",
        kind: Kind::Size {
            min: 0,
            max: 1 << 40,
            field: |settings| &mut settings.limits.response_spill_bytes_max,
        },
        default: Preset::Text("1G"),
        doc: "Bytes of a response that are kept in a spill file for a slow client",
        long: "Above it, the worker waits for the client. The file is in temp_dir and has no name. \
               If this and limits.response_memory_bytes_max are 0, a worker always waits for its \
               client.",
        ..PLAIN
    },
    Setting {
        key: "limits.buffered_bytes_max",
        flag: "buffered-bytes-max",
        value: "SIZE",
        kind: Kind::Size {
            min: 0,
            max: 1 << 40,
            field: |settings| &mut settings.limits.buffered_bytes_max,
        },
        default: Preset::Text("256M"),
        doc: "Bytes of all responses that are kept in memory for slow clients",
        long: "Above half of it, long responses use spill files. At the limit, the largest \
               response of the client that holds most is cut: its HTTP/2 stream is reset, or its \
               connection is closed. \
               A client that leaves its share (limits.buffer_share) unread gets 503 for further \
               requests. Responses that the kernel buffers do not count. 0: no limit.",
        ..PLAIN
    },
    Setting {
        key: "limits.spooled_bytes_max",
        flag: "spooled-bytes-max",
        value: "SIZE",
        kind: Kind::Size {
            min: 0,
            max: 1 << 50,
            field: |settings| &mut settings.limits.spooled_bytes_max,
        },
        default: Preset::Text("8G"),
        doc: "Bytes of all request bodies and responses in files in temp_dir",
        long: "A request body that would exceed it, or its client's share (limits.buffer_share), \
               gets 503. If another client holds more, or if a response needs room, the largest \
               body or response of the client that holds most is cut. PHP's own temporary files \
               do not count. 0: no limit.",
        ..PLAIN
    },
    Setting {
        key: "limits.buffer_share",
        flag: "buffer-share",
        value: "PERCENT",
        kind: count(1, 100, |settings| &mut settings.limits.buffer_share),
        default: Preset::Text("25"),
        doc: "Maximum share of buffered_bytes_max and spooled_bytes_max for one client, in percent",
        long: "A client is an IPv4 address or an IPv6 network of 64 bits, as reported by trusted \
               proxies. 100: no limit.",
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
        doc: "Maximum growth of a worker's PHP heap before Samovar\\serve() rolls back",
        long: "Applies if rollbackEvery, or rollback_every for a FrankenPHP worker script, is not \
               0. If it is 0, a worker that has grown twice by an eighth of this value logs which \
               objects grow.",
        ..PLAIN
    },
    Setting {
        key: "limits.tasks_max",
        flag: "tasks-max",
        value: "N",
        kind: count(1, 1024, |settings| &mut settings.limits.tasks_max),
        default: Preset::Text("256"),
        doc: "Maximum number of tasks of one request that are in flight",
        long: "Above it, Samovar\\parallel() and similar functions throw an Error.",
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
        doc: "Stack size of a task, for PHP's internal functions and libraries",
        long: "Only the part that is used takes memory. Recursive PHP code does not use this \
               stack.",
        ..PLAIN
    },
];
