// Options that C gets once, before PHP starts: name in C, type, source.
//
// This file is read twice: build.rs writes the struct for C (`samovar_options` in from_rust.h), and
// src/php_options.rs declares and fills the one for Rust. Types: Text (a NUL-terminated string that
// lives as long as the process), bool, usize, u64.
php_options! { |options, frankenphp_worker|
    /// size of the cache for apcu_fetch() and the other APCu functions, 0: they do not exist
    apcu_bytes: u64 = options.apcu_bytes;
    /// replaces the built-in php.ini; NULL: the built-in one is used
    ini_file: Text = Text::of_path(options.php_ini.as_deref())?;
    /// lines `key=value` that override every file
    ini_entries: Text = Text::of(ini::lines(&options.define))?;
    /// the front controller, "" for none
    app_script: Text = Text::of_path(options.app.as_deref())?.or_empty();
    /// the document root
    root: Text = Text::of_path(Some(&options.root))?;
    /// a file whose first inclusion ends in a checkpoint, "" for none
    checkpoint_after: Text = Text::of_path(options.checkpoint_after.as_deref())?.or_empty();
    /// file that each request below a checkpoint includes first, "" for none
    checkpoint_resume: Text = Text::of_path(options.checkpoint_resume.as_deref())?.or_empty();
    /// request data that the boot reads on purpose, one per line
    boot_reads: Text = Text::of(options.boot_reads.join("\n"))?;
    /// growth of PHP's heap after which a resident worker rolls back
    growth_bytes_max: u64 = options.growth_bytes_max;
    /// maximum number of tasks of one request in flight
    tasks_max: usize = options.tasks_max;
    /// size of a task's stack
    task_stack_bytes: u64 = options.task_stack_bytes;
    /// number of requests between rollbacks of a FrankenPHP worker script, 0: never
    rollback_every: usize = options.rollback_every;
    /// database connections of the image: "prove", "reset" or "leave"
    checkpoint_connections: Text = Text::of(options.checkpoint_connections.as_str())?;
    /// the front controller is a FrankenPHP worker script
    frankenphp_worker: bool = frankenphp_worker;
    /// frankenphp_log() also writes messages below the level "info"
    log_debug: bool = options.debug_log;
    /// folder for heap walks, "" for none
    heap_walk: Text = Text::of_path(options.heap_walk.as_deref())?.or_empty();
    /// one out of this number of whole scripts reports the files that it includes, 0: none
    loads_every: u64 = options.loads_every;
    /// PHP reports each call, for call graphs of requests
    traces: bool = options.traces;
    /// there are tracing workers, and a request may run in one of them
    may_trace: bool = options.may_trace;
    /// Samovar\Mock: 0 does not exist, 1 throws, 2 works
    mocks: u64 = options.mocks.map_or(0, |mocks| 1 + u64::from(mocks));
    /// PHP_SAPI
    sapi_name: Text = Text::of(options.sapi_name.as_str())?;
    /// $_SERVER['SERVER_SOFTWARE']
    server_software: Text = Text::of(options.server_software.as_str())?;
}
