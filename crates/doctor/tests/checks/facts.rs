//! Healthy facts, and a fault for each check.

use samovar_doctor::{ApplicationFacts, BootFacts, ComposerFacts, Facts};
use samovar_wire::{
    About, CapacityStatus, Health, HealthProblem, ImageFinding, ImageStatus, MachineFacts,
    MessagesStatus, OpcacheStatus, PhpFacts, RouteFacts, SavingStatus, SettingsFacts, Severity,
    StatementFacts, Status, WaitLine, WorkerStatus,
};

/// A fault, and its finding.
pub(crate) struct Case {
    /// Code of the check.
    pub(crate) code: &'static str,
    /// Plants the fault.
    pub(crate) spoil: fn(&mut Facts),
    /// Part of the finding: its text, value, place or cost.
    pub(crate) says: &'static str,
    /// Checks that also have a finding.
    pub(crate) also: &'static [&'static str],
}

const MS: u64 = 1_000_000;

fn directives() -> Vec<(&'static str, &'static str)> {
    vec![
        ("allow_url_include", "0"),
        ("auto_globals_jit", "1"),
        ("display_errors", ""),
        ("implicit_flush", ""),
        ("log_errors", "1"),
        ("memory_limit", "128M"),
        ("opcache.enable", "1"),
        ("opcache.file_cache_only", "0"),
        ("opcache.jit", "off"),
        ("opcache.jit_buffer_size", "0"),
        ("opcache.optimization_level", "0x7FFEBFFF"),
        ("opcache.protect_memory", "0"),
        ("opcache.revalidate_freq", "2"),
        ("opcache.validate_timestamps", "0"),
        ("open_basedir", ""),
        ("realpath_cache_size", "4096K"),
        ("session.auto_start", "0"),
        ("session.lazy_write", "1"),
        ("zend.assertions", "-1"),
        ("zlib.output_compression", ""),
    ]
}

/// Facts of a healthy server that has run for hours. All are known.
pub(crate) fn healthy() -> Facts {
    let worker =
        WorkerStatus { state: "idle".into(), model: "script".into(), ..Default::default() };
    let image = ImageStatus {
        mode: "shared".into(),
        boot_ms: 100.0,
        rollbacks_total: 1_000,
        saving: Some(SavingStatus { ahead_us: 100.0, script_us: 800.0, scripts: 30 }),
        ..Default::default()
    };
    let opcache = OpcacheStatus {
        used_bytes: 40 << 20,
        free_bytes: 88 << 20,
        strings_used_bytes: 2 << 20,
        strings_free_bytes: 6 << 20,
        scripts: 300,
        keys: 500,
        keys_max: 16_229,
        hits_total: 50_000,
        misses_total: 300,
        ..Default::default()
    };
    let mut status = Status {
        uptime_seconds: 7_200.0,
        health: Some(Health { healthy: true, findings: Vec::new() }),
        workers: vec![worker; 4],
        image: Some(image),
        opcache: Some(opcache),
        capacity: CapacityStatus {
            seconds: 60.0,
            cores: 2.0,
            cores_free: 1.0,
            ..Default::default()
        },
        ..Default::default()
    };
    status.front.pools.requests_total = 1_000;
    status.resources.descriptors.sockets = 100;
    status.resources.mappings = 500;
    let route = RouteFacts {
        route: "index.php /shop".into(),
        requests: 1_000,
        run: 1_000,
        wall_ns: 40_000 * MS,
        run_ns: 30_000 * MS,
        cpu_ns: 10_000 * MS,
        waiting_ns: 15_000 * MS,
        peak_bytes_max: 8 << 20,
        bytes_out: 4_000_000,
        waits: vec![wait("unix", "/run/mysqld.sock", 15_000 * MS)],
        ..Default::default()
    };
    let pairs = directives().into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    let php = PhpFacts {
        version: "8.4.2".into(),
        root: "/srv/shop/public".into(),
        script: "/srv/shop/public/index.php".into(),
        directives: pairs.collect(),
        extensions: vec!["Core".into(), "session".into(), "Zend OPcache".into()],
        environment: Some([("APP_ENV".to_owned(), "prod".to_owned())].into()),
        ..Default::default()
    };
    let composer = ComposerFacts {
        folder: "/srv/shop/vendor/composer".into(),
        is_authoritative: true,
        classes: 5_000,
        files: 12,
        dev_packages: Vec::new(),
    };
    Facts {
        now: 1_795_000_000, // 2026-11-18
        status: Some(status),
        routes: Some(vec![route]),
        php: vec![php],
        settings: Some(SettingsFacts {
            listen_backlog: 4_096,
            connections_max: 1_000,
            ..Default::default()
        }),
        machine: Some(MachineFacts {
            somaxconn: Some(4_096),
            overcommit: Some(0),
            memory_bytes: Some(8 << 30),
            swapped_bytes: Some(0),
            files_max: Some(20_000),
            mappings_max: Some(65_530),
        }),
        boots: vec![BootFacts { requests: 1_000, ..Default::default() }],
        applications: vec![ApplicationFacts {
            folder: "/srv/shop".into(),
            root: "/srv/shop/public".into(),
            has_root: Some(true),
            composer: Some(composer),
            ..Default::default()
        }],
    }
}

fn wait(kind: &str, peer: &str, ns: u64) -> WaitLine {
    WaitLine { kind: kind.into(), peer: peer.into(), times: 1_000, ns }
}

fn status(facts: &mut Facts) -> &mut Status {
    facts.status.as_mut().expect("healthy facts have a status")
}

fn capacity(facts: &mut Facts) -> &mut CapacityStatus {
    &mut status(facts).capacity
}

fn image(facts: &mut Facts) -> &mut ImageStatus {
    status(facts).image.as_mut().expect("healthy facts have an image")
}

fn opcache(facts: &mut Facts) -> &mut OpcacheStatus {
    status(facts).opcache.as_mut().expect("healthy facts have opcache")
}

fn route(facts: &mut Facts) -> &mut RouteFacts {
    &mut facts.routes.as_mut().expect("healthy facts have routes")[0]
}

fn machine(facts: &mut Facts) -> &mut MachineFacts {
    facts.machine.as_mut().expect("healthy facts have a machine")
}

fn settings(facts: &mut Facts) -> &mut SettingsFacts {
    facts.settings.as_mut().expect("healthy facts have settings")
}

fn composer(facts: &mut Facts) -> &mut ComposerFacts {
    facts.applications[0].composer.as_mut().expect("healthy facts have Composer")
}

fn set(facts: &mut Facts, name: &str, value: &str) {
    facts.php[0].directives.insert(name.into(), value.into());
}

fn load(facts: &mut Facts, extension: &str) {
    facts.php[0].extensions.push(extension.into());
}

/// Replaces the waits of the route.
fn waits(facts: &mut Facts, kind: &str, peer: &str, ns: u64) {
    route(facts).waits = vec![wait(kind, peer, ns)];
}

/// Adds a finding of the server's own health check.
fn unwell(facts: &mut Facts, about: About) {
    let found = HealthProblem {
        about,
        severity: Severity::Problem,
        text: format!("planted {}", about.name()),
        value: "7".into(),
        limit: "3".into(),
        hint: "mend it".into(),
    };
    status(facts).health = Some(Health { healthy: false, findings: vec![found] });
}

macro_rules! cases {
    ($($code:literal, $says:literal, [$($also:literal),*], $spoil:expr;)*) => {
        /// A fault for each check.
        pub(crate) const CASES: &[Case] =
            &[$(Case { code: $code, spoil: $spoil, says: $says, also: &[$($also),*] },)*];
    };
}

cases! {
    "readiness", "planted readiness 7 (limit 3)", [], |f| unwell(f, About::Readiness);
    "errors", "planted errors", [], |f| unwell(f, About::Errors);
    "crashes", "planted crashes", [], |f| unwell(f, About::Crashes);
    "queue", "planted queue", [], |f| unwell(f, About::Queue);
    "memory", "planted memory", [], |f| unwell(f, About::Memory);
    "image", "planted image", [], |f| unwell(f, About::Image);
    "boot", "planted boot", [], |f| unwell(f, About::Boot);
    "certificates", "planted certificates", [], |f| unwell(f, About::Certificates);
    "disk", "planted disk", [], |f| unwell(f, About::Disk);
    "logs", "planted logs", [], |f| unwell(f, About::Logs);
    "routes", "planted routes", [], |f| unwell(f, About::Routes);
    "schedules", "planted schedules", [], |f| unwell(f, About::Schedules);
    "jobs", "planted jobs", [], |f| unwell(f, About::Jobs);

    "n-plus-one", "src/List.php:40 12 ms of 40 ms per request", [], |f| {
        route(f).repeated = vec![StatementFacts {
            text: "SELECT ? FROM tags".into(),
            requests: 900,
            repeating: 800,
            repeats_max: 50,
            ns: 12_000 * MS,
            place: "src/List.php:40".into(),
            ..Default::default()
        }];
    };
    "slow-peer", "10.0.0.5:3306 most of the time 75 %", [], |f| {
        waits(f, "tcp", "10.0.0.5:3306", 30_000 * MS);
    };
    "dns-lookups", "1.0 lookups per request", [], |f| waits(f, "dns", "", 2_000 * MS);
    "session-lock", "25 % of its time", [], |f| waits(f, "lock", "session file", 10_000 * MS);
    "lock-wait", "waits for a lock", [], |f| waits(f, "lock", "System V", 10_000 * MS);
    "sleeps", "20 ms per request", [], |f| waits(f, "sleep", "", 20_000 * MS);
    "disk-wait", "waits for a disk", [], |f| waits(f, "file", "log file", 8_000 * MS);
    "static-through-php", "index.php /img/{n}.png 29 %", [], |f| {
        let files = RouteFacts {
            route: "index.php /img/{n}.png".into(),
            requests: 400,
            run: 400,
            cpu_ns: 400 * MS,
            ..Default::default()
        };
        f.routes.as_mut().expect("routes").push(files);
    };
    "not-found", "33 %", [], |f| {
        let missing = RouteFacts {
            route: "(not found)".into(),
            requests: 400,
            run: 400,
            cpu_ns: 5_000 * MS,
            ..Default::default()
        };
        f.routes.as_mut().expect("routes").push(missing);
    };
    "route-errors", "10 % of 1000 requests", [], |f| route(f).errors = 100;
    "fatal-errors", "1 request", [], |f| route(f).fatal = 1;
    "worker-deaths", "2 requests", [], |f| route(f).died = 2;
    "clients-leave", "20 %", [], |f| route(f).aborted = 200;
    "php-messages", "2.0 per request", [], |f| {
        status(f).messages = MessagesStatus { deprecated_total: 2_000, ..Default::default() };
    };

    "queue-time", "50 % of their time 20 ms per request", [], |f| route(f).queue_ns = 20_000 * MS;
    "workers-idle", "of 20 workers are busy", [], |f| {
        let worker = status(f).workers[0].clone();
        status(f).workers = vec![worker; 20];
    };
    "workers-surplus", "4 never have a request", [], |f| {
        settings(f).surplus = vec!["4 never have a request\nhint: lower them".into()];
    };
    "cpu-delay", "50 % of their time on the CPU", [], |f| route(f).cpu_delay_ns = 10_000 * MS;
    "cpu-throttled", "in 30 % of the periods", [], |f| capacity(f).throttled = 0.3;
    "cpu-stolen", "0.40 of 2.0 cores", [], |f| capacity(f).cores_stolen = 0.4;
    "memory-limit-near", "120 MiB of 128 MiB", [], |f| route(f).peak_bytes_max = 120 << 20;
    "memory-limit-none", "memory_limit", [], |f| set(f, "memory_limit", "-1");
    "memory-total", "4 workers with a peak of 8.0 MiB, 16 MiB of memory", [], |f| {
        machine(f).memory_bytes = Some(16 << 20);
    };
    "swapping", "64 MiB", [], |f| machine(f).swapped_bytes = Some(64 << 20);
    "major-faults", "1.0 page faults", [], |f| route(f).faults_major = 1_000;

    "checkpoint-early", "in 50 % of the requests Foo.php 300 µs of CPU time", [], |f| {
        f.boots[0].loading = 500;
        f.boots[0].cpu_ns = 300 * MS;
        f.boots[0].file = "Foo.php".into();
    };
    "boot-gain", "900 µs instead of 1.0 ms", [], |f| {
        image(f).saving = Some(SavingStatus { ahead_us: 900.0, script_us: 1_000.0, scripts: 30 });
    };
    "fresh-forks", "33 % of the requests, mostly connection", [], |f| {
        image(f).refork_total = 500;
        image(f).refork_reasons = [("connection".to_owned(), 500)].into();
    };
    "boot-findings", "an open pipe a.php:3", [], |f| {
        image(f).findings = vec![ImageFinding {
            kind: "pipe".into(),
            action: "script".into(),
            what: "an open pipe".into(),
            place: "a.php:3".into(),
            advice: String::new(),
        }];
    };

    "opcache-off", "opcache is off", [], |f| {
        set(f, "opcache.enable", "0");
        status(f).opcache = None;
    };
    "opcache-full", "1.0 MiB of 128 MiB are free", [], |f| {
        opcache(f).used_bytes = 127 << 20;
        opcache(f).free_bytes = 1 << 20;
    };
    "opcache-wasted", "20 MiB of 128 MiB", [], |f| {
        opcache(f).wasted_bytes = 20 << 20;
        opcache(f).free_bytes = 68 << 20;
    };
    "opcache-keys", "16000 of 16229", [], |f| opcache(f).keys = 16_000;
    "opcache-strings", "0 KiB of 2.0 MiB are free", [], |f| opcache(f).strings_free_bytes = 0;
    "opcache-restarts", "2 times", [], |f| opcache(f).restarts_memory_total = 2;
    "opcache-misses", "29 % of 70000 lookups", [], |f| opcache(f).misses_total = 20_000;
    "opcache-timestamps", "every 2 s", [], |f| set(f, "opcache.validate_timestamps", "1");
    "opcache-debugging", "0x0", [], |f| set(f, "opcache.optimization_level", "0x0");
    "opcache-file-only", "only files", [], |f| set(f, "opcache.file_cache_only", "1");

    "php-version", "no longer supports PHP 8.1", [], |f| f.php[0].version = "8.1.30".into();
    "display-errors", "display_errors = On", [], |f| set(f, "display_errors", "On");
    "log-errors", "log_errors = 0", [], |f| set(f, "log_errors", "0");
    "xdebug", "xdebug.mode = off", [], |f| {
        load(f, "xdebug");
        set(f, "xdebug.mode", "off");
    };
    "coverage-extension", "pcov", [], |f| load(f, "pcov");
    "assertions", "zend.assertions = 1", [], |f| set(f, "zend.assertions", "1");
    "jit", "opcache.jit = tracing", [], |f| {
        set(f, "opcache.jit", "tracing");
        set(f, "opcache.jit_buffer_size", "64M");
    };
    "jit-conflict", "ionCube Loader switches the JIT off", ["jit"], |f| {
        set(f, "opcache.jit", "1255");
        set(f, "opcache.jit_buffer_size", "64M");
        load(f, "ionCube Loader");
    };
    "realpath-cache", "16 KiB for 300 files", [], |f| set(f, "realpath_cache_size", "16K");
    "output-compression", "level 9", [], |f| {
        set(f, "zlib.output_compression", "On");
        set(f, "zlib.output_compression_level", "9");
    };
    "implicit-flush", "implicit_flush = 1", [], |f| set(f, "implicit_flush", "1");
    "session-auto-start", "session.auto_start = 1", [], |f| set(f, "session.auto_start", "1");
    "session-lazy-write", "session.lazy_write", [], |f| set(f, "session.lazy_write", "0");
    "remote-includes", "allow_url_include = On", [], |f| set(f, "allow_url_include", "On");
    "superglobals", "auto_globals_jit = off", [], |f| set(f, "auto_globals_jit", "");

    "root-missing", "/srv/shop/public", [], |f| f.applications[0].has_root = Some(false);
    "app-debug", "APP_DEBUG=true in a .env file", [], |f| {
        f.applications[0].variables = [("APP_DEBUG".to_owned(), "true".to_owned())].into();
    };
    "composer-dev", "a/b, c/d, e/f … 4 packages", [], |f| {
        composer(f).dev_packages = ["a/b", "c/d", "e/f", "g/h"].map(str::to_owned).into();
    };
    "composer-classmap", "5000 classes", [], |f| composer(f).is_authoritative = false;
    "composer-files", "80 files", [], |f| composer(f).files = 80;

    "exposed", "no token", [], |f| {
        settings(f).exposures = vec!["no token\nhint: leave out `admin_token`".into()];
    };
    "backlog", "128 instead of 4096", [], |f| machine(f).somaxconn = Some(128);
    "open-files", "500 files, 1000 connections", [], |f| machine(f).files_max = Some(500);
    "mappings", "60000 of 65530", [], |f| status(f).resources.mappings = 60_000;
    "overcommit", "vm.overcommit_memory = 2", [], |f| machine(f).overcommit = Some(2);
    "compression-off", "39 KiB per response", [], |f| route(f).bytes_out = 40_000_000;
}
